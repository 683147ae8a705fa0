import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { retry } from "./api/queries";
import "./ui/tokens.css";
import "./ui/base.css";

const queries = new QueryClient({
  defaultOptions: {
    queries: { retry, retryDelay: (failures) => Math.min(8000, 1000 * 1.6 ** failures), staleTime: 5000 },
    mutations: { retry: false },
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
