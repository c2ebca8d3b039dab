// Writes src/messages/: the messages of canopy.v1 for TypeScript, from the descriptors that the Rust code has, too.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  CodeGeneratorRequestSchema,
  CodeGeneratorResponseSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";

const here = dirname(fileURLToPath(import.meta.url));
const descriptors = readFileSync(join(here, "../proto/src/generated/canopy_v1_descriptors.bin"));
const { file } = fromBinary(FileDescriptorSetSchema, descriptors);
// Comments are for readers of the definitions, and would be most of what is made.
for (const one of file) one.sourceCodeInfo = undefined;
const request = create(CodeGeneratorRequestSchema, {
  protoFile: file,
  fileToGenerate: file.map((one) => one.name).filter((name) => name.startsWith("canopy/v1/")),
  parameter: "target=ts,import_extension=none",
});
const generator = join(here, "node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es");
const made = spawnSync(process.execPath, [generator], {
  input: toBinary(CodeGeneratorRequestSchema, request),
  maxBuffer: 1 << 26,
});
if (made.status !== 0) throw new Error(made.stderr.toString());
const response = fromBinary(CodeGeneratorResponseSchema, made.stdout);
if (response.error) throw new Error(response.error);
const folder = join(here, "src/messages");
rmSync(folder, { recursive: true, force: true });
for (const { name, content } of response.file) {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}
