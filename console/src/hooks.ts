// State of pages: the route, and what is asked of the server again and again.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { CallError } from "./rpc";

/** What was asked for. */
export interface Asked<T> {
  data: T | undefined;
  error: CallError | undefined;
  /** Asks again at once. */
  again: () => void;
}

function asError(problem: unknown): CallError {
  return problem instanceof CallError ? problem : new CallError(2, problem instanceof Error ? problem.message : String(problem));
}

/** Asks once, and again every `every` seconds while the page is shown; `key` says what is asked for. */
export function useAsked<T>(key: string, every: number, ask: (signal: AbortSignal) => Promise<T>): Asked<T> {
  const [answer, setAnswer] = useState<{ key: string; data?: T; error?: CallError }>({ key });
  const [round, setRound] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    const aborter = new AbortController();
    let timer: number | undefined;
    const turn = async () => {
      if (!document.hidden) {
        try {
          const data = await latest.current(aborter.signal);
          setAnswer({ key, data });
        } catch (problem) {
          if (aborter.signal.aborted) return;
          // What was known stays on the page.
          setAnswer((before) => ({ key, error: asError(problem), ...(before.key === key && before.data !== undefined ? { data: before.data } : {}) }));
        }
      }
      if (every > 0 && !aborter.signal.aborted) timer = window.setTimeout(turn, every * 1000);
    };
    void turn();
    return () => {
      aborter.abort();
      clearTimeout(timer);
    };
  }, [key, every, round]);
  const again = useCallback(() => setRound((before) => before + 1), []);
  const isCurrent = answer.key === key;
  return { data: isCurrent ? answer.data : undefined, error: isCurrent ? answer.error : undefined, again };
}

/** A page and its parameters, as the part of the address after `#` states them. */
export interface Route {
  path: string[];
  query: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query) };
}

export function useRoute(): Route {
  const [route, setRoute] = useState(read);
  useEffect(() => {
    const changed = () => setRoute(read());
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}

/** The address of a page. */
export function link(path: string, query: Record<string, string> = {}): string {
  const stated = Object.entries(query).filter(([, value]) => value !== "");
  return `#/${path}${stated.length ? `?${new URLSearchParams(stated)}` : ""}`;
}

/** Changes parameters of the page; an empty one is left out. */
export function amend(route: Route, changes: Record<string, string>): void {
  const query = { ...Object.fromEntries(route.query), ...changes };
  location.hash = link(route.path.map(encodeURIComponent).join("/"), query);
}
