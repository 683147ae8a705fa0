import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { PartVerdict } from "../../api/types";
import { setLanguage } from "../../ui/preferences";
import { SettingsButton, SettingsDialog } from "./SettingsDialog";

const temperature = { path: "generate/temperature", left: 1, right: 0.7, matters: true, state: "differs", why: null } as const;
const name = { path: "rl/run", left: "a", right: "b", matters: false, state: "differs", why: null } as const;
const eager = {
  code: "eager",
  text: { en: "The engine runs eagerly", zh: "推理引擎为 eager 模式" },
  wanted: "true",
  left: { state: "ok", path: "generate/enforce_eager", value: true },
  right: { state: "failed", path: "generate/enforce_eager", value: false },
} as const;
const failing = {
  code: "preconditions_failed",
  severity: "warning",
  modules: [],
  text: { en: "not so", zh: "不满足" },
  evidence: {},
} as const;

type Configured = Pick<PartVerdict, "configurations" | "preconditions" | "findings">;

function line(verdict: Configured): string | null {
  cleanup();
  render(<SettingsButton verdict={verdict} onOpen={() => undefined} />);
  return screen.queryByRole("button")?.textContent ?? null;
}

describe("what the configurations of two runs of one part say", () => {
  afterEach(() => {
    cleanup();
    setLanguage("en");
  });

  it("is nothing for two plain dumps", () => {
    expect(line({ findings: [] })).toBeNull();
  });

  it("is said in a line: what matters first, preconditions only where training stands against inference", () => {
    expect(line({ configurations: [temperature, name], preconditions: [eager], findings: [] })).toBe("1 setting that matters differs");
    expect(line({ configurations: [name], preconditions: [eager], findings: [] })).toBe("1 setting differs");
    expect(line({ configurations: [temperature], preconditions: [eager], findings: [failing] })).toBe(
      "1 setting that matters differs, 1 precondition fails",
    );
    expect(line({ configurations: [], preconditions: [eager], findings: [] })).toBe("Settings and preconditions");
    setLanguage("zh");
    expect(line({ configurations: [name], findings: [] })).toBe("1 项配置不同");
  });

  it("opens over the tree with both tables, and closes again", () => {
    const onClose = vi.fn();
    render(
      <SettingsDialog
        verdict={{ configurations: [temperature], preconditions: [eager], findings: [] }}
        names={{ left: "run_a", right: "run_b" }}
        onClose={onClose}
      />,
    );
    const dialog = within(screen.getByRole("dialog", { name: "Settings and preconditions" }));
    expect(dialog.getByRole("rowheader", { name: "generate/temperature" })).toBeTruthy();
    expect(dialog.getByText("The engine runs eagerly")).toBeTruthy();
    fireEvent.click(dialog.getByRole("button", { name: "Close" }));
    expect(onClose).toHaveBeenCalled();
  });
});
