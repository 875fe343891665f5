"""The resources of a client that are imported when they are first used.

Few programs use them, and their records would make the import of the package slower.
"""

from functools import cached_property
from typing import TYPE_CHECKING

from neonctl_async.resources.base import Requester

if TYPE_CHECKING:
    from neonctl_async.resources.services.ai_gateway import AiGateway
    from neonctl_async.resources.services.auth import Auth
    from neonctl_async.resources.services.credentials import Credentials
    from neonctl_async.resources.services.custom_domains import CustomDomains
    from neonctl_async.resources.services.data_api import DataApi
    from neonctl_async.resources.services.functions import Functions
    from neonctl_async.resources.services.logs import Logs
    from neonctl_async.resources.services.storage import Storage
    from neonctl_async.resources.services.triggers import Triggers


class OnDemand:
    """The services of a branch beside its databases."""

    _requester: Requester

    @cached_property
    def auth(self) -> "Auth":
        """Neon Auth of a branch: users, sign-in providers, domains and settings."""
        from neonctl_async.resources.services.auth import Auth

        return Auth(self._requester)

    @cached_property
    def data_api(self) -> "DataApi":
        """The Data API: HTTP access to a database of a branch."""
        from neonctl_async.resources.services.data_api import DataApi

        return DataApi(self._requester)

    @cached_property
    def storage(self) -> "Storage":
        """Object storage of a branch: buckets and their objects."""
        from neonctl_async.resources.services.storage import Storage

        return Storage(self._requester)

    @cached_property
    def functions(self) -> "Functions":
        """Functions of a branch, and their deployments."""
        from neonctl_async.resources.services.functions import Functions

        return Functions(self._requester)

    @cached_property
    def triggers(self) -> "Triggers":
        """Triggers of a branch."""
        from neonctl_async.resources.services.triggers import Triggers

        return Triggers(self._requester)

    @cached_property
    def credentials(self) -> "Credentials":
        """Credentials of a branch: tokens for its services."""
        from neonctl_async.resources.services.credentials import Credentials

        return Credentials(self._requester)

    @cached_property
    def ai_gateway(self) -> "AiGateway":
        """The AI gateway of a branch."""
        from neonctl_async.resources.services.ai_gateway import AiGateway

        return AiGateway(self._requester)

    @cached_property
    def custom_domains(self) -> "CustomDomains":
        """Custom domains of a branch."""
        from neonctl_async.resources.services.custom_domains import CustomDomains

        return CustomDomains(self._requester)

    @cached_property
    def logs(self) -> "Logs":
        """Logs of a branch."""
        from neonctl_async.resources.services.logs import Logs

        return Logs(self._requester)
