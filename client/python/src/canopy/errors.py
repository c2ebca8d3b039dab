"""Errors of refused calls: gRPC status, stable reason and typed details, and the exit status of `canopy`."""

from dataclasses import dataclass

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from canopy import v1

EXIT_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: 2,
    grpc.StatusCode.OUT_OF_RANGE: 2,
    grpc.StatusCode.NOT_FOUND: 2,
    grpc.StatusCode.ALREADY_EXISTS: 2,
    grpc.StatusCode.UNAUTHENTICATED: 2,
    grpc.StatusCode.PERMISSION_DENIED: 2,
    grpc.StatusCode.UNIMPLEMENTED: 2,
    grpc.StatusCode.FAILED_PRECONDITION: 3,
    grpc.StatusCode.DEADLINE_EXCEEDED: 5,
    grpc.StatusCode.UNAVAILABLE: 6,
    grpc.StatusCode.ABORTED: 6,
    grpc.StatusCode.CANCELLED: 6,
}


@dataclass(frozen=True)
class Refusal:
    """Why a call was refused."""

    code: grpc.StatusCode
    message: str
    reason: str | None
    """Stable reason, such as QUEUE_FULL; None if the error is not from canopy."""
    fields: tuple[tuple[str, str], ...]
    """Paths of fields in the request, and what is wrong with each."""
    retry_after_s: float | None
    """Delay before a retry; None if waiting does not help."""

    @property
    def exit_status(self) -> int:
        """The exit status of the `canopy` command for this refusal."""
        if self.code == grpc.StatusCode.RESOURCE_EXHAUSTED:
            # A limit that waiting does not lift is a matter of the request.
            return 2 if self.retry_after_s is None else 6
        return EXIT_STATUS.get(self.code, 4)


def refusal(error: grpc.RpcError) -> Refusal:
    """Reads the status and details of a failed call."""
    reason, fields, retry_after_s = None, (), None
    for detail in _details(error):
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            info = error_details_pb2.ErrorInfo()
            detail.Unpack(info)
            reason = info.reason if info.domain == "canopy" else None
        elif detail.Is(error_details_pb2.BadRequest.DESCRIPTOR):
            bad = error_details_pb2.BadRequest()
            detail.Unpack(bad)
            fields = tuple((violation.field, violation.description) for violation in bad.field_violations)
        elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            retry = error_details_pb2.RetryInfo()
            detail.Unpack(retry)
            retry_after_s = retry.retry_delay.ToTimedelta().total_seconds()
    return Refusal(error.code(), error.details() or "", reason, fields, retry_after_s)


def reason(error: v1.ErrorStatus) -> str:
    """The stable reason of an error within an answer, such as PLAN_NOT_CACHED; empty if it states none."""
    info = error_details_pb2.ErrorInfo()
    return next((info.reason for detail in error.details if detail.Unpack(info)), "")


def _details(error: grpc.RpcError) -> list:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            try:
                return list(status_pb2.Status.FromString(value).details)
            except DecodeError:
                return []
    return []
