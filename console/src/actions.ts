// Whether the console may change something: off in every new tab.
import { createContext } from "preact";

const KEY = "canopy-actions";

export const Actions = createContext(false);

export function readActions(): boolean {
  return sessionStorage.getItem(KEY) === "on";
}

export function keepActions(on: boolean): void {
  if (on) sessionStorage.setItem(KEY, "on");
  else sessionStorage.removeItem(KEY);
}
