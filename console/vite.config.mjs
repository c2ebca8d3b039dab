// Makes the files that the server has inside: names without hashes, so that the server can list them, and no file from elsewhere.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  publicDir: "public",
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    target: "es2022",
    outDir: process.env.CONSOLE_OUT ?? "../server/assets/console",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: {
        entryFileNames: "console.js",
        assetFileNames: (asset) => (asset.names.some((name) => name.endsWith(".css")) ? "console.css" : "[name][extname]"),
        inlineDynamicImports: true,
      },
    },
  },
  worker: { format: "es", rollupOptions: { output: { entryFileNames: "reader.js" } } },
});
