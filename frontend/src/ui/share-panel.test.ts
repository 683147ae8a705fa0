import { describe, expect, it } from "vitest";
import { changeView, flushViewState } from "../use-view-state";
import { shareLink } from "./share-panel";

describe("the link to share", () => {
  it("carries what is on screen, though the address bar lags behind", () => {
    changeView({ node: 151, query: "grade>noise" });
    expect(shareLink("http://127.0.0.1:8000", "http://127.0.0.1:8000")).toMatch(/#v=1&n=47&q=grade%3Enoise$/);
    flushViewState();
    expect(window.location.hash).toBe("#v=1&n=47&q=grade%3Enoise");
    changeView({ node: null, query: "" });
    flushViewState();
  });

  it("names the server as teammates reach it, when this page came over loopback", () => {
    expect(shareLink("http://10.0.0.7:8000/", "http://127.0.0.1:8000")).toMatch(/^http:\/\/10\.0\.0\.7:8000\//);
    expect(shareLink("http://10.0.0.7:8000", "http://localhost:8000")).toMatch(/^http:\/\/10\.0\.0\.7:8000\//);
  });

  it("keeps the name under which this reader reached the server", () => {
    expect(shareLink("http://10.0.0.7:8000", "http://probe.lan:8000")).toMatch(/^http:\/\/probe\.lan:8000\//);
  });
});
