CREATE TABLE items (
    name text PRIMARY KEY,
    stock integer NOT NULL CHECK (stock >= 0)
);

CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    item text NOT NULL REFERENCES items,
    count integer NOT NULL CHECK (count > 0)
);
