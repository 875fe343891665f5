"""Campaigns: thousands of random faults and kills, and a comparison of all results at the end."""
