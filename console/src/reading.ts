// Has a plan file, or a network, read beside the page, and asks about it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Ends, Hops, LinkUses, Model, Question, Reply } from "./model";

/** A file that is being read, or was. */
export interface Reading {
  model?: Model;
  problem?: string;
  /** Hops of a tree, and which of them cross a link. */
  tree: (index: number, link: Ends | undefined) => Promise<Hops>;
  /** What uses a link. */
  uses: (link: Ends) => Promise<LinkUses>;
}

/** Answers come in the order of questions. */
type Waiting = { resolve: (reply: Reply) => void };

export function useReader(text: Uint8Array | undefined): Reading {
  const [read, setRead] = useState<{ model?: Model; problem?: string }>({});
  const worker = useRef<Worker>();
  const waiting = useRef<Waiting[]>([]);
  useEffect(() => {
    setRead({});
    waiting.current = [];
    if (!text) return;
    const own = new Worker(new URL("./reader.ts", import.meta.url), { type: "module" });
    worker.current = own;
    waiting.current.push({ resolve: (reply) => setRead("model" in reply ? reply : { problem: "problem" in reply ? reply.problem : "the file cannot be read" }) });
    own.onmessage = ({ data }: MessageEvent<Reply>) => waiting.current.shift()?.resolve(data);
    own.onerror = () => setRead({ problem: "the file cannot be read" });
    own.postMessage({ ask: "read", text } satisfies Question);
    return () => own.terminate();
  }, [text]);
  const questions = useMemo(() => {
    const ask = (question: Question) => new Promise<Reply>((resolve) => {
      waiting.current.push({ resolve });
      worker.current?.postMessage(question);
    });
    const wanted = <T>(reply: Reply, of: (reply: Reply) => T | undefined): T => {
      const found = of(reply);
      if (found === undefined) throw new Error("problem" in reply ? reply.problem : "the file cannot be read");
      return found;
    };
    return {
      tree: async (index: number, link: Ends | undefined) => wanted(await ask({ ask: "tree", index, link }), (reply) => ("hops" in reply ? reply.hops : undefined)),
      uses: async (link: Ends) => wanted(await ask({ ask: "uses", link }), (reply) => ("uses" in reply ? reply.uses : undefined)),
    };
  }, []);
  return { ...read, ...questions };
}
