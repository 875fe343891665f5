"""A web application in which each tenant has its own database.

    pip install 'neonctl-async[postgres]' fastapi uvicorn
    python -m tenants --workers 2

Each tenant is a branch of one project. A branch has its own compute, so a busy tenant does not
slow down the others. An idle compute is suspended. You can restore or delete a single tenant's
data.

One branch with a database per tenant would also work. All tenants would then share one compute, its
restarts and one history. Choose this for many small tenants that must never wait for a compute to
start.
"""
