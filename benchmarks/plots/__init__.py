"""The plots of the results, as SVG."""
