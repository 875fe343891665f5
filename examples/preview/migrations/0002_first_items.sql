INSERT INTO items (name, stock) VALUES ('book', 10), ('pen', 100);
