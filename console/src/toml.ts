// Settings as canopyd writes them: one `key = value` a line.

/** The values of a file, as TOML, by key. */
export function valuesOf(toml: string): Map<string, string> {
  const found = new Map<string, string>();
  let last = "";
  for (const line of toml.split("\n")) {
    const [, key, value] = /^([a-z_]+) = (.*)$/.exec(line) ?? [];
    if (key && value !== undefined) found.set((last = key), value);
    // A value may go on in further lines.
    else if (last && line.trim() && !line.startsWith("#")) found.set(last, `${found.get(last)} ${line.trim()}`);
  }
  return found;
}

/** A text in TOML without its quotes; everything else as it is. */
export function plain(value: string): string {
  if (/^'.*'$/.test(value)) return value.slice(1, -1);
  if (!/^".*"$/.test(value)) return value;
  try {
    return String(JSON.parse(value));
  } catch {
    return value.slice(1, -1);
  }
}
