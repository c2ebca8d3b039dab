// Writes src/messages/settings.ts: every setting of canopyd with its meaning and default, from deploy/canopyd.toml.
import { readFileSync, writeFileSync } from "node:fs";

const text = readFileSync(new URL("../deploy/canopyd.toml", import.meta.url), "utf8");
const settings = text.split(/\n\n+/).slice(1).map((block) => {
  const found = /^# (?<meaning>.*) \[default: (?<words>.*)\]\.\n# Flag [^\n]*\n(?:# )?(?<name>[a-z_]+) = (?<literal>.*)\n?$/.exec(block);
  if (!found) throw new Error(`deploy/canopyd.toml: this is no setting:\n${block}`);
  const { meaning, words, name, literal } = found.groups;
  // Where the line is a comment, its value is an example.
  const isStated = !block.trimEnd().split("\n").at(-1).startsWith("#");
  return { name, meaning, words, literal: isStated ? literal : null };
});
writeFileSync(
  new URL("src/messages/settings.ts", import.meta.url),
  `/** Settings of canopyd; \`literal\`: the default as TOML, if it is one for every machine. */\nexport const SETTINGS: readonly { name: string; meaning: string; words: string; literal: string | null }[] = ${JSON.stringify(settings, null, 2)};\n`,
);
