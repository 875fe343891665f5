"""The distribution neonctl-local. Only its tests are imported from here, as control_plane.tests."""
