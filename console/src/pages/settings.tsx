// The settings of the server: what is in effect, what waits for the next start, and what is logged.
import { useContext, useState } from "preact/hooks";
import { Actions } from "../actions";
import { amend, useAsked, type Route } from "../hooks";
import { type GetConfigResponse, Server } from "../messages/canopy/v1/server_pb";
import { SETTINGS } from "../messages/settings";
import { Action, Badge, Choice, Coded, Empty, Facts, Field, Section, Shown, Table } from "../parts";
import { call, CallError } from "../rpc";
import { plain, valuesOf } from "../toml";
import { bytes } from "../words";

export function SettingsPage({ route }: { route: Route }) {
  const asked = useAsked("settings", 5, (signal) => call(Server.method.getConfig, {}, { signal }));
  return (
    <Shown of={asked}>
      {(config) => (
        <>
          <Pending config={config} />
          <Log config={config} again={asked.again} />
          <All config={config} route={route} />
        </>
      )}
    </Shown>
  );
}

/** What a start would read otherwise now. */
function Pending({ config: { pending, pendingError } }: { config: GetConfigResponse }) {
  return (
    <>
      {pendingError && <div class="problem" role="alert"><strong>The server would not start again</strong><p>{pendingError}</p></div>}
      {pending.length > 0 && <p role="status"><Badge tone="warn">changed</Badge> The next start reads {pending.length === 1 ? "this setting" : "these settings"} otherwise: {pending.map((name, at) => <>{at > 0 && ", "}<code>{name}</code></>)}.</p>}
    </>
  );
}

const TIMES: [string, string][] = [["300", "5 minutes"], ["1800", "30 minutes"], ["7200", "2 hours"], ["", "until the next reload"]];

/** The log filter, and another one for a while. */
function Log({ config, again }: { config: GetConfigResponse; again: () => void }) {
  const configured = plain(valuesOf(config.toml).get("log") ?? "");
  const mayAct = useContext(Actions);
  const [filter, setFilter] = useState("debug");
  const [lasts, setLasts] = useState(TIMES[0]![0]);
  const set = async () => {
    const { before } = await call(Server.method.setLogFilter, { filter, ...(lasts ? { lasts: { seconds: BigInt(lasts) } } : {}) });
    return `The filter was ${before}.`;
  };
  const reload = async () => {
    const { parts } = await call(Server.method.reloadConfig, {});
    const failed = parts.filter(({ error }) => error);
    if (failed.length) throw new CallError(9, failed.map(({ what, error }) => `${what}: ${error}`).join("; "));
    return `Read again: ${parts.map(({ what }) => what).join(", ")}.`;
  };
  const time = TIMES.find(([key]) => key === lasts)![1];
  return (
    <Section title="Log filter">
      <Facts of={[
        ["In effect", <><code>{config.logFilter}</code>{configured && config.logFilter !== configured && <Badge tone="warn">differs from the setting</Badge>}</>],
        ["Setting", configured && <code>{configured}</code>],
      ]} />
      {mayAct && (
        <div class="filters log-filter">
          <Field wide label="New filter" value={filter} placeholder="info,canopy_server::jobs=debug" onChange={(value) => setFilter(value.trim())} />
          <Choice label="In effect for" value={lasts} of={TIMES} onChange={setLasts} />
          <Action label="Change the log filter" confirm="Change it" act={set} onDone={again}
            question={<>The server logs by <code>{filter || "an empty filter"}</code>, {lasts ? `for ${time}; then the setting counts again` : `${time} or start`}.</>} />
          <Action label="Reload the configuration" confirm="Reload it" act={reload} onDone={again}
            question="The server reads its log filter, rules of access and certificates again. A part that cannot be used stays as it is." />
        </div>
      )}
    </Section>
  );
}

interface Row {
  name: string;
  value: string | undefined;
  /** The default in words. */
  words: string;
  meaning: string;
  isOwn: boolean;
}

/** Settings whose files are read again when they change. */
const FILES: ReadonlySet<string> = new Set(["access", "tokens", "tls_certificate", "tls_key", "tls_client_ca"]);

function rowsOf(config: GetConfigResponse): Row[] {
  const values = valuesOf(config.toml);
  const known = SETTINGS.map(({ name, meaning, words, literal }): Row => {
    const value = values.get(name);
    // Defaults that depend on the machine are in words: nothing says whether the value is one.
    const isOwn = value !== undefined && (literal !== null ? value !== literal : words.startsWith("none"));
    return { name, value, words, meaning, isOwn };
  });
  const names = new Set(known.map(({ name }) => name));
  const others = [...values].filter(([name]) => !names.has(name)).map(([name, value]): Row => ({ name, value, words: "", meaning: "", isOwn: false }));
  return [...known, ...others];
}

function isBytes(name: string, value: string): boolean {
  return name.endsWith("_bytes") && /^\d+$/.test(value);
}

function All({ config, route }: { config: GetConfigResponse; route: Route }) {
  const [find, which] = ["find", "which"].map((key) => route.query.get(key) ?? "") as [string, string];
  const pending = new Set(config.pending);
  const rows = rowsOf(config);
  const shown = rows.filter(({ name, meaning, isOwn }) => `${name} ${meaning}`.toLowerCase().includes(find.toLowerCase()) && (which === "" || (which === "own" ? isOwn : pending.has(name))));
  return (
    <Section title="Settings">
      <div class="filters" role="search">
        <Field wide label="Find" value={find} placeholder="deadline" onChange={(value) => amend(route, { find: value })} />
        <Choice label="Show" value={which} of={[["", `all ${rows.length}`], ["own", "those that differ from their default"], ["pending", "those that wait for the next start"]]} onChange={(value) => amend(route, { which: value })} />
      </div>
      {shown.length === 0 ? <Empty>No setting matches.</Empty> : (
        <Table label="Every setting" rows={shown} keyOf={({ name }) => name}
          columns={[
            { head: "Setting", cell: ({ name, isOwn }) => <><code class="whole">{name}</code>{isOwn && <Badge tone="busy">set</Badge>}{pending.has(name) && <Badge tone="warn">waits for a start</Badge>}</> },
            { head: "Value", cell: ({ name, value }) => value === undefined ? "–" : <><code class="value" title={value}>{plain(value)}</code>{isBytes(name, value) && <span class="soft"> {bytes(BigInt(value))}</span>}</> },
            { head: "Default", cell: ({ name, words }) => <><Coded text={words} />{isBytes(name, words) && <span class="soft"> {bytes(BigInt(words))}</span>}</> },
            { head: "A change counts", cell: ({ name }) => (name === "log" ? "after a reload" : FILES.has(name) ? "after a start; its file at once" : "after a start") },
            { head: "Meaning", cell: ({ meaning }) => <Coded text={meaning} /> },
          ]} />
      )}
    </Section>
  );
}
