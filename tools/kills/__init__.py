"""Kills the processes of a local control plane with Postgres, and checks that nothing is lost."""
