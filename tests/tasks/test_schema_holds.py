"""The running server does what its own description says, for whatever a client makes up (schemathesis, a bounded run)."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

pytestmark = pytest.mark.timeout(280)

EXAMPLES = 20  # a call

schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")


def test_every_call_of_the_description_answers_in_our_shape_whatever_is_sent(live_stack):
    schema = schemathesis.openapi.from_url(f"{live_stack.url}/api/v1/schema/")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 25
    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
        def send(case):
            response = case.call()
            assert response.status_code < 500, (case.method, case.path, response.text[:500])
            assert "Traceback" not in response.text
            if response.status_code >= 400 and case.method != "HEAD":
                body = response.json()
                assert {"code", "params", "message"} == set(body), body
                assert isinstance(body["message"], str)

        send()
