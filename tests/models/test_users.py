from neonctl_async.types import AuthDetails, AuthMethod, CardBrand, CurrentUser
from tests.models.records import decode


def test_user_decodes_nested_records() -> None:
    account = {"payment_source": {"type": "card", "card": {"last4": "4242", "brand": "visa"}}}
    content = {
        "id": "user-1",
        "email": "ada@example.com",
        "auth_accounts": [{"email": "ada@example.com", "provider": "brand_new"}],
        "billing_account": account,
    }
    user = decode(CurrentUser, content)
    assert [account.provider for account in user.auth_accounts] == ["brand_new"]
    assert user.billing_account is not None
    source = user.billing_account.payment_source
    assert source is not None
    assert source.card is not None
    assert (source.card.last4, source.card.brand) == ("4242", CardBrand.VISA)


def test_authentication_method_is_an_enumeration() -> None:
    details = decode(AuthDetails, {"account_id": "user-1", "auth_method": "api_key_org"})
    assert details.auth_method is AuthMethod.API_KEY_ORG
