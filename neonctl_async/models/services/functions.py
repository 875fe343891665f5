"""Functions of a branch, and their deployments."""

from neonctl_async.models.base import Model, OpenEnum, Pagination


class FunctionDeploymentStatus(OpenEnum):
    """The progress of building a deployment."""

    PENDING = "pending"
    BUILDING = "building"
    COMPLETED = "completed"
    FAILED = "failed"


class FunctionDeployment(Model, kw_only=True):
    """A version of the code and settings of a function.

    ``created_at`` is a string, because Neon does not specify its format.
    """

    id: int
    """The version, which increases with each new deployment of a function."""
    status: FunctionDeploymentStatus
    memory_mib: int
    """In MiB."""
    runtime: str
    """The runtime, such as ``nodejs24``."""
    created_at: str
    environment: list[str] | None = None
    """The sorted names of the environment variables. Neon never returns their values."""
    error: str | None = None
    """The reason why the build failed."""


class NeonFunction(Model, kw_only=True):
    """A function of a branch.

    ``created_at`` is a string, because Neon does not specify its format.
    """

    id: str
    slug: str
    """The name of the function in its URL. It is unique within the branch and never changes."""
    name: str
    """The display name; the slug if there is none."""
    invocation_url: str
    """The URL that calls the function, with a trailing slash. Empty if there is none."""
    current_deployment: FunctionDeployment | None = None
    """The latest deployment, which may still be building or may have failed."""
    active_deployment: FunctionDeployment | None = None
    """The latest deployment that was built successfully. It handles the calls."""
    created_at: str


class FunctionResponse(Model, kw_only=True):
    """A response that contains one function."""

    function: NeonFunction


class FunctionsPage(Model, kw_only=True):
    """A page of functions."""

    functions: list[NeonFunction]
    pagination: Pagination | None = None


class FunctionDeploymentResponse(Model, kw_only=True):
    """A response that contains one deployment."""

    deployment: FunctionDeployment
