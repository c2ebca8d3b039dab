// What pages consist of: tables, states, figures and questions.
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import type { Asked } from "./hooks";
import { CallError, codeName, PERMISSION_DENIED, UNREACHABLE } from "./rpc";
import { counted } from "./words";

const ADVICE: Record<number, string> = {
  [UNREACHABLE]: "Look whether canopyd runs. This page asks again by itself.",
  [PERMISSION_DENIED]: "Ask an admin for a role that may do this.",
};

/** An error in words, with its code and reason. */
export function Problem({ error, title }: { error: CallError; title?: string }) {
  return (
    <div class="problem" role="alert">
      <strong>{title ?? "This did not work"}</strong>
      <p>{error.message || codeName(error.code)}</p>
      {ADVICE[error.code] && <p>{ADVICE[error.code]}</p>}
      <p class="codes">
        <code>{codeName(error.code)}</code> {error.reason && <code>{error.reason}</code>}
      </p>
    </div>
  );
}

/** Shows an answer, or that it is on its way, or why it failed. */
export function Shown<T>({ of, children }: { of: Asked<T>; children: (data: T) => ComponentChildren }) {
  return (
    <>
      {of.error && <Problem error={of.error} title={of.data === undefined ? undefined : "This page is out of date"} />}
      {of.data !== undefined ? children(of.data) : !of.error && <Loading />}
    </>
  );
}

export function Loading({ what = "Loading" }: { what?: string }) {
  return <p class="loading" role="status">{what}…</p>;
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="empty">{children}</div>;
}

/** A figure with what it means. */
export function Figure({ label, value, note, href, tone }: { label: string; value: ComponentChildren; note?: ComponentChildren; href?: string; tone?: string }) {
  const inner = (
    <>
      <span class="label">{label}</span>
      <span class="value">{value}</span>
      {note && <span class="note">{note}</span>}
    </>
  );
  const name = `figure ${tone ?? ""}`;
  return href ? <a class={name} href={href}>{inner}</a> : <div class={name}>{inner}</div>;
}

export function Section({ title, children, aside }: { title: string; children: ComponentChildren; aside?: ComponentChildren }) {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** A column of a table: its head, and its cell of a row. */
export interface Column<T> {
  head: string;
  cell: (row: T) => ComponentChildren;
  /** Name of the field by which the server orders. */
  by?: string;
  number?: boolean;
}

export function Table<T>({ label, columns, rows, sort, onSort, keyOf }: {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  sort?: string;
  onSort?: (sort: string) => void;
  keyOf: (row: T) => string;
}) {
  const [field, direction] = (sort ?? "").split(" ");
  const head = ({ head: text, by, number }: Column<T>) => {
    const isOwn = by !== undefined && by === field;
    const order = isOwn ? (direction === "desc" ? "descending" : "ascending") : undefined;
    const next = isOwn && direction !== "desc" ? `${by} desc` : (by ?? "");
    return (
      <th scope="col" class={number ? "number" : ""} aria-sort={order}>
        {by && onSort ? <button type="button" class="sort" onClick={() => onSort(next)}>{text}<span aria-hidden="true">{isOwn ? (direction === "desc" ? " ↓" : " ↑") : ""}</span></button> : text}
      </th>
    );
  };
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead><tr>{columns.map(head)}</tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>{columns.map((column) => <td class={column.number ? "number" : ""}>{column.cell(row)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Terms and what they are. */
export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return <dl class="facts">{of.filter(([, value]) => value !== undefined && value !== "").map(([term, value]) => <div><dt>{term}</dt><dd>{value}</dd></div>)}</dl>;
}

export function Badge({ tone = "", children }: { tone?: string; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** A share of a whole, as a bar and in words. */
export function Bar({ value, label, tone = "" }: { value: number; label: string; tone?: string }) {
  const width = Math.max(0, Math.min(1, value)) * 100;
  return (
    <span class="bar" role="img" aria-label={label}>
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect class="track" width="100" height="8" rx="2" />
        <rect class={`fill ${tone}`} width={width} height="8" rx="2" />
      </svg>
      <span aria-hidden="true">{label}</span>
    </span>
  );
}

/** A field that takes effect on Enter or on leaving it. */
export function Field({ label, value, onChange, placeholder, wide }: { label: string; value: string; onChange: (value: string) => void; placeholder?: string; wide?: boolean }) {
  const [{ text, of }, set] = useState({ text: value, of: value });
  // Another value replaces what was typed.
  if (of !== value) set({ text: value, of: value });
  const setText = (text: string) => set({ text, of: value });
  const done = () => text !== value && onChange(text);
  return (
    <label class={wide ? "field wide" : "field"}>
      <span>{label}</span>
      <input type="text" spellcheck={false} autocomplete="off" value={text} placeholder={placeholder}
        onInput={(event) => setText(event.currentTarget.value)} onBlur={done}
        onKeyDown={(event) => event.key === "Enter" && done()} />
    </label>
  );
}

export function Choice({ label, value, of, onChange }: { label: string; value: string; of: readonly (readonly [string, string])[]; onChange: (value: string) => void }) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {of.map(([key, text]) => <option value={key} selected={key === value}>{text}</option>)}
      </select>
    </label>
  );
}

/** Asks before something is done, and shows what came of it. */
export function Action({ label, question, confirm, act, onDone, danger }: {
  label: string;
  question: ComponentChildren;
  confirm: string;
  act: () => Promise<string>;
  onDone?: () => void;
  danger?: boolean;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<string | CallError>();
  const close = () => dialog.current?.close();
  const go = async () => {
    setBusy(true);
    try {
      setOutcome(await act());
      close();
      onDone?.();
    } catch (problem) {
      setOutcome(problem instanceof CallError ? problem : new CallError(2, String(problem)));
    }
    setBusy(false);
  };
  return (
    <span class="action">
      <button type="button" class={danger ? "danger" : ""} onClick={() => { setOutcome(undefined); dialog.current?.showModal(); }}>{label}</button>
      {typeof outcome === "string" && <span class="outcome" role="status">{outcome}</span>}
      <dialog ref={dialog} aria-labelledby={title}>
        <h2 id={title}>{label}?</h2>
        <div>{question}</div>
        {outcome instanceof CallError && <Problem error={outcome} />}
        <div class="buttons">
          <button type="button" onClick={close} autofocus>Keep as it is</button>
          <button type="button" class={danger ? "danger" : "primary"} disabled={busy} onClick={go}>{confirm}</button>
        </div>
      </dialog>
    </span>
  );
}

/** Links to pages of one thing. */
export function Tabs({ label, of, current }: { label: string; of: readonly (readonly [string, string, string])[]; current: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {of.map(([key, text, href]) => <a href={href} aria-current={key === current ? "page" : undefined}>{text}</a>)}
    </nav>
  );
}

/** Text in which backticks enclose names. */
export function Coded({ text }: { text: string }) {
  return <>{text.split("`").map((part, at) => (at % 2 ? <code>{part}</code> : part))}</>;
}

/** First page, and the next one. */
export function Pages({ total, shown, word, next, onFirst, onNext, isFirst }: { total: bigint; shown: number; word: string; next: string; onFirst: () => void; onNext: () => void; isFirst: boolean }) {
  return (
    <div class="pages">
      <span role="status">{isFirst && !next ? counted(total, word) : `${shown} of ${counted(total, word)}`}</span>
      <button type="button" disabled={isFirst} onClick={onFirst}>First page</button>
      <button type="button" disabled={!next} onClick={onNext}>Next page</button>
    </div>
  );
}
