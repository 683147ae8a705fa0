import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { retry } from "./api/queries";
import "./ui/tokens.css";
import "./ui/base.css";

const queries = new QueryClient({
  defaultOptions: {
    // The server may be this machine: a browser that is offline still reaches it, and a question that fails says so where a paused one does not.
    queries: { networkMode: "always", retry, retryDelay: (failures) => Math.min(8000, 1000 * 1.6 ** failures), staleTime: 5000 },
    mutations: { networkMode: "always", retry: false },
  },
});

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
