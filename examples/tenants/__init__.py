"""A web application in which each tenant has its own database.

    pip install 'neonctl-async[postgres]' fastapi uvicorn
    python -m tenants --workers 2

Each tenant is a branch of one project. A branch has its own compute, so a busy tenant slows down no
other tenant. A compute without queries is suspended. You can restore or delete the data of one
tenant alone.

A database per tenant, all on one branch, would also work. There, all tenants share one compute, its
restarts and its history. Choose it for many small tenants that must never wait for a compute.
"""
