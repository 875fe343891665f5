"""Server processes: their life, the locks of calls, and the guardian that ends them."""
