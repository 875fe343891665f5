-- The key that created a transfer request. Revoking it closes the request.
ALTER TABLE transfer_requests ADD COLUMN key_id INTEGER REFERENCES api_keys (id);
