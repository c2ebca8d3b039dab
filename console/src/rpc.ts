// Calls of canopy.v1 over gRPC-Web, to the server that the page comes from.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DescMessage, DescMethod, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";

/** A call that failed: the code of gRPC, and the reason of canopy if there is one. */
export class CallError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly reason = "",
  ) {
    super(message);
  }
}

/** No answer came: the server is gone, or cannot be reached. */
export const UNREACHABLE = -1;
export const UNAUTHENTICATED = 16;
export const PERMISSION_DENIED = 7;
export const OUT_OF_RANGE = 11;

const CODES = [
  "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
  "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
];

export function codeName(code: number): string {
  return code === UNREACHABLE ? "NO_ANSWER" : (CODES[code] ?? `CODE_${code}`);
}

const TOKEN = "canopy-token";
const TENANT = "canopy-tenant";

/** Who calls: kept for this tab alone, and gone with it. */
export const caller = {
  get token() {
    return sessionStorage.getItem(TOKEN) ?? "";
  },
  get tenant() {
    return sessionStorage.getItem(TENANT) ?? "";
  },
  set(token: string, tenant: string) {
    for (const [key, value] of [[TOKEN, token], [TENANT, tenant]] as const) {
      if (value) sessionStorage.setItem(key, value);
      else sessionStorage.removeItem(key);
    }
  },
};

type Method = DescMethod;

/** A call with one answer. */
export async function call<M extends Method>(
  method: M,
  request: MessageInitShape<M["input"]>,
  options: Options = {},
): Promise<MessageShape<M["output"]>> {
  for await (const answer of stream(method, request, options)) return answer;
  throw new CallError(2, "the server sent no answer");
}

export interface Options {
  signal?: AbortSignal;
  /** Longest time for the call. */
  seconds?: number;
}

/** A call whose answers come one after the other. */
export async function* stream<M extends Method>(
  method: M,
  request: MessageInitShape<M["input"]>,
  { signal, seconds = 30 }: Options = {},
): AsyncGenerator<MessageShape<M["output"]>> {
  const input: DescMessage = method.input;
  const message = toBinary(input, create(input, request as MessageInitShape<DescMessage>));
  const body = new Uint8Array(5 + message.length);
  new DataView(body.buffer).setUint32(1, message.length);
  body.set(message, 5);
  const headers: Record<string, string> = {
    "content-type": "application/grpc-web+proto",
    "x-grpc-web": "1",
    "grpc-timeout": `${Math.round(seconds * 1000)}m`,
  };
  if (caller.token) headers["authorization"] = `Bearer ${caller.token}`;
  if (caller.tenant) headers["x-canopy-tenant"] = caller.tenant;
  const path = `../${method.parent.typeName}/${method.name}`;
  const sent = { method: "POST", headers, body, cache: "no-store", redirect: "error", signal: signal ?? null } as const;
  const response = await fetch(path, sent).catch((problem: unknown) => {
    if (signal?.aborted) throw problem;
    throw new CallError(UNREACHABLE, "the server does not answer");
  });
  if (!response.ok) throw new CallError(UNREACHABLE, (await response.text()).trim() || `HTTP ${response.status}`);
  refuse(response.headers.get("grpc-status"), (name) => response.headers.get(name));
  yield* frames(method, response.body!.getReader(), signal);
}

/** Reads the frames of an answer to the last one, which states how the call ended. */
async function* frames<M extends Method>(
  method: M,
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<MessageShape<M["output"]>> {
  let kept: Uint8Array<ArrayBufferLike> = new Uint8Array();
  try {
    for (;;) {
      const read = await reader.read().catch((problem: unknown) => {
        if (signal?.aborted) throw problem;
        throw new CallError(UNREACHABLE, "the connection to the server broke");
      });
      if (read.done) throw new CallError(UNREACHABLE, "the connection to the server broke");
      if (kept.length === 0) kept = read.value;
      else {
        const joined = new Uint8Array(kept.length + read.value.length);
        joined.set(kept);
        joined.set(read.value, kept.length);
        kept = joined;
      }
      while (kept.length >= 5) {
        const length = new DataView(kept.buffer, kept.byteOffset).getUint32(1);
        if (kept.length < 5 + length) break;
        const data = kept.subarray(5, 5 + length);
        const isLast = (kept[0]! & 0x80) !== 0;
        kept = kept.subarray(5 + length);
        if (isLast) {
          const lines = new TextDecoder().decode(data).split("\r\n");
          const trailers = new Map(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
          refuse(trailers.get("grpc-status"), (name) => trailers.get(name));
          return;
        }
        yield fromBinary(method.output as DescMessage, data) as MessageShape<M["output"]>;
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Throws if a status is not OK. */
function refuse(status: string | null | undefined, header: (name: string) => string | null | undefined): void {
  if (!status || status === "0") return;
  let message = header("grpc-message") ?? "";
  try {
    message = decodeURIComponent(message);
  } catch {
    // It is shown as it came.
  }
  let reason = "";
  try {
    reason = reasonOf(header("grpc-status-details-bin") ?? "");
  } catch {
    // Details are an extra.
  }
  throw new CallError(Number(status), message, reason);
}

/** The reason in the ErrorInfo among the details of a google.rpc.Status, encoded in Base64. */
function reasonOf(details: string): string {
  if (!details) return "";
  const bytes = Uint8Array.from(atob(details.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));
  for (const any of fields(bytes, 3)) {
    const [type] = fields(any, 1);
    const [value] = fields(any, 2);
    if (type && value && new TextDecoder().decode(type).endsWith("google.rpc.ErrorInfo")) {
      const [reason] = fields(value, 1);
      return reason ? new TextDecoder().decode(reason) : "";
    }
  }
  return "";
}

/** The fields of a message with this number, which are bytes. */
function fields(message: Uint8Array, number: number): Uint8Array[] {
  const reader = new BinaryReader(message);
  const found: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === number && type === 2) found.push(reader.bytes());
    else reader.skip(type, field);
  }
  return found;
}

/** A UUID for a call that changes something. `crypto.randomUUID` exists on secure pages only. */
export function requestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
