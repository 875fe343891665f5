"""Pages of API keys, organizations, members, invitations and users."""
