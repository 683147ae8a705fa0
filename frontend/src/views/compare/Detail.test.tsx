import { fireEvent, render, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { Finding } from "../../api/types";
import { Checked } from "./Checked";
import { node, slot, statistic, verdict } from "./documents-for-tests";
import { residualSlot, shortRecord } from "./Residual";
import { SlotTable, WorstStatistics } from "./SlotTable";
import { VerdictBlock } from "./VerdictBlock";

const finding = (code: string, severity: Finding["severity"], en: string): Finding => ({
  code,
  severity,
  modules: [],
  text: { en, zh: en },
  evidence: {},
});
const sides = { left: "train", right: "inference" };

function table(slots: Parameters<typeof SlotTable>[0]["slots"], columns: 4 | 5 | 6 = 6, origin = true) {
  render(<SlotTable slots={slots} sides={sides} columns={columns} own={new Set(["left", "right"])} origin={origin} />);
  return screen.getByTestId("slots");
}

const cells = (row: HTMLElement) => [...row.querySelectorAll("th,td")].map((cell) => cell.textContent);

describe("the statistics of a row", () => {
  const weight = slot({
    group: "parameters",
    slot: "parameters.weight",
    state: "first",
    grade: "diverged",
    statistics: [
      statistic("norm", { left: 30, right: 29.875, difference: -0.125, relative: -0.004166666666666667, ulps: -1 }),
      statistic("max", {
        left: 0.076171875,
        right: 0.0712890625,
        difference: -0.0048828125,
        relative: -0.0641025641025641,
        of: "extreme",
        ulps: -10,
        over: true,
      }),
      statistic("mean", {
        left: 1.4185905456542969e-6,
        right: 1.400709e-6,
        difference: -1.788e-8,
        relative: -0.000002,
        of: "rms",
        ulps: -3,
      }),
    ],
  });

  it("end with the checksums of both sides, where a weight differs in nothing else", () => {
    const checksum = { left: "8e4df5e2", right: "1d7f2210", state: "differs" } as const;
    const rows = within(table([slot({ ...weight, statistics: [statistic("norm")], checksum })])).getAllByRole("row");
    expect(cells(rows[3] as HTMLElement)).toEqual(["Checksum", "8e4df5e2", "1d7f2210", "differs"]);
  });

  it("stand in four significant digits, with every digit on hover", () => {
    const rows = within(table([weight])).getAllByRole("row");
    expect(cells(rows[2] as HTMLElement)).toEqual(["Norm", "30.00", "29.88", "−0.1250", "−0.42\u00a0%", "−1"]);
    expect(cells(rows[3] as HTMLElement)).toEqual(["Max", "0.07617", "0.07129", "−0.004883", "−6.41\u00a0%", "−10"]);
    expect(cells(rows[4] as HTMLElement)).toEqual(["Mean", "1.419e−6", "1.401e−6", "−1.788e−8", "<\u00a00.01\u00a0% of RMS", "−3"]);
    expect((rows[3] as HTMLElement).querySelectorAll("td")[0]?.getAttribute("title")).toBe("0.076171875");
    expect(document.body.textContent).not.toMatch(/\d{8,}/);
  });

  it("say whether a slot agrees, differs, or differs first here", () => {
    expect(table([weight]).textContent).toContain("differs, first here");
  });

  it("call nothing the first of a difference that was handed on", () => {
    expect(table([weight], 6, false).textContent).not.toContain("first here");
  });

  it("mark NaN where it stands, and no empty cell", () => {
    const slots = [
      slot({
        state: "first",
        grade: "diverged",
        statistics: [statistic("norm", { left: 28.4, right: "NaN", difference: null, relative: null, ulps: null, over: true })],
      }),
    ];
    const row = within(table(slots)).getAllByRole("row")[2] as HTMLElement;
    expect(cells(row)).toEqual(["Norm", "28.40", "NaN", "–", "–", "–"]);
    expect(row.querySelectorAll("td")[1]?.className).not.toBe("");
  });

  it("give a count of steps that fills more than its column as a magnitude", () => {
    const slots = [
      slot({
        state: "differs",
        grade: "diverged",
        statistics: [statistic("norm", { ulps: 15_861_234_567_890, over: true }), statistic("max", { ulps: -0.3 })],
      }),
    ];
    const rows = within(table(slots)).getAllByRole("row");
    expect(cells(rows[2] as HTMLElement).at(-1)).toBe("+1.6e13");
    expect(cells(rows[3] as HTMLElement).at(-1)).toBe("0");
  });

  it("give a slot of one side one line", () => {
    const single = slot({
      slot: "input.0",
      group: "input",
      left: [],
      state: "right_only",
      grade: "no_pair",
      reason: null,
      statistics: [statistic("norm", { left: null, right: 29.25 })],
    });
    const rows = within(table([single])).getAllByRole("row");
    expect(rows).toHaveLength(2);
    expect(rows[1]?.textContent).toContain("Norm 29.25 · inference only");
  });

  it("name the module where a partner lives that is in another", () => {
    const elsewhere = slot({
      elsewhere: true,
      right: [
        {
          record: "Module.model.layers.12.input_layernorm.RMSNorm.forward.0",
          slot: "output.1",
          dtype: "torch.bfloat16",
          shape: [190, 896],
        },
      ],
    });
    expect(table([elsewhere]).textContent).toContain("↔ layers.12.input_layernorm output.1");
  });

  it("drop the columns that a narrow panel has no room for", () => {
    const rows = within(table([weight], 4)).getAllByRole("row");
    expect(cells(rows[2] as HTMLElement)).toEqual(["Norm", "30.00", "29.88", "−1"]);
  });

  it("fold inputs that agree where there are many", () => {
    const many = Array.from({ length: 9 }, (_, place) => slot({ group: "input", slot: `input.${place}`, order: place }));
    expect(table(many).textContent).toContain("6 more slots agree");
  });

  it("on a phone show the worst of each slot, two where it differs", () => {
    render(<WorstStatistics slots={[weight]} sides={sides} />);
    const rows = screen.getAllByRole("row").slice(1);
    expect(rows.map((row) => cells(row as HTMLElement)[0])).toEqual(["weight Max", "weight Mean"]);
  });
});

describe("the residual stream", () => {
  it("is the output's partner among all slots that have theirs elsewhere", () => {
    const stream = slot({ elsewhere: true, reason: { code: "residual_stream", text: { en: "", zh: "" } } });
    const other = slot({ elsewhere: true, reason: { code: "elsewhere", text: { en: "", zh: "" } } });
    expect(residualSlot(node({ slots: [other, stream] }))).toBe(stream);
    expect(residualSlot(node({ slots: [other] }))).toBeNull();
  });

  it("names a record by its place without wrappers, class and call", () => {
    expect(shortRecord("Module._fsdp_wrapped_module.model.layers.2._fsdp_wrapped_module.mlp.down_proj.Linear.forward.0")).toBe(
      "layers.2.mlp.down_proj",
    );
    expect(shortRecord("Module.model.norm.RMSNorm.forward.0")).toBe("model.norm");
  });
});

describe("the verdict block", () => {
  it("is one sentence with its place in bold, the confidence in a word, and each premise with its state in words", () => {
    render(<VerdictBlock verdict={verdict()} actions={null} />);
    const sentence = screen.getByTestId("verdict-sentence");
    expect(sentence.querySelector("b")?.textContent).toBe("First divergence: layers.11 · mlp.down_proj");
    expect(sentence.textContent).toBe(
      "First divergence: layers.11 · mlp.down_proj — weights differ (Norm 30 / 29.88, Max 0.07617 / 0.07129)",
    );
    expect(screen.getByText("61 later pairs inherit it.")).toBeTruthy();
    expect(screen.getByText("high")).toBeTruthy();
    expect(screen.getByText("the statistics of 169 of 170 weights agree")).toBeTruthy();
    const failed = screen.getByText(/weights: 1 of 170 differs/);
    expect(failed.textContent).toBe("weights: 1 of 170 differs, failed");
  });

  it("says under a diverged verdict what the reader must know, and holds notes ready", () => {
    const findings = [
      finding("mapping_rule_unused", "warning", "1 rule matches nothing"),
      finding("parts_not_compared", "info", "The left side holds more: step 1"),
      finding("same_input", "info", "The same dump twice"),
    ];
    render(<VerdictBlock verdict={verdict({ findings })} actions={null} />);
    expect(screen.getByRole("list", { name: "Warnings" }).textContent).toBe("1 rule matches nothing");
    expect(screen.queryByText(/step 1/)).toBeNull();
    fireEvent.click(screen.getByRole("button", { name: "2 notes", expanded: false }));
    expect(within(screen.getByRole("list", { name: "Notes" })).getAllByRole("listitem")).toHaveLength(2);
    fireEvent.click(screen.getByRole("button", { name: "2 notes", expanded: true }));
    expect(screen.queryByRole("list", { name: "Notes" })).toBeNull();
  });

  it("names a warning once where all agrees: the notes stand with what was checked", () => {
    const findings = [finding("baseline_same_input", "warning", "The baseline is the left dump"), finding("same_input", "info", "Twice")];
    const consistent = verdict({ verdict: "consistent", first_divergence: null, findings });
    render(
      <>
        <VerdictBlock verdict={consistent} actions={null} />
        <Checked verdict={consistent} />
      </>,
    );
    expect(screen.getAllByText("The baseline is the left dump")).toHaveLength(1);
    expect(screen.getAllByText("Twice")).toHaveLength(1);
    expect(screen.queryByRole("button")).toBeNull();
  });

  it("says of a consistent verdict what it rests on", () => {
    render(
      <VerdictBlock
        verdict={verdict({
          verdict: "consistent",
          first_divergence: null,
          headline: { en: "Consistent — all agree. Rests on bf16 statistics", zh: "" },
        })}
        actions={null}
      />,
    );
    expect(screen.getByTestId("verdict-sentence").textContent).toBe("Consistent — all agree");
    expect(screen.getByText("Rests on bf16 statistics")).toBeTruthy();
  });
});
