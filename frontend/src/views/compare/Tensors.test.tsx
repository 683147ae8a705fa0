import { fireEvent, render, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { MeasuredTensor } from "../../api/types";
import { slot } from "./documents-for-tests";
import { Tensors } from "./Tensors";

function measured(own: Partial<MeasuredTensor> = {}): MeasuredTensor {
  return {
    state: "compared",
    fault: null,
    layout: "same",
    elements: 768,
    identical: 99,
    cosine: 0.99304358,
    relative_l2: 0.1178,
    max_absolute: 0.3203125,
    max_relative: 19.47,
    within_thousandth: 0.1289,
    within_five_thousandths: 0.1471,
    nan: [0, 0],
    infinite: [0, 0],
    misplaced: 0,
    ulps: { of: "bf16", edges: [0, 1, 2], counts: [99, 300, 200, 169] },
    rows: { length: 12, values: [0, 0.1, 0.3] },
    columns: { length: 64, values: [0.2, 0.1] },
    worst: [{ row: 8, column: 57, left: -0.78125, right: -0.4609375, difference: 0.3203125 }],
    ...own,
  };
}

const input = slot({
  group: "input",
  slot: "input.2",
  state: "agrees",
  grade: "equal",
  tensor: measured({ identical: 768, relative_l2: 0, cosine: 1 }),
});
const output = slot({ group: "output", slot: "output.0", state: "first", grade: "diverged", tensor: measured() });

describe("what the elements say", () => {
  it("opens with the slot that differs, and with another when it is asked for", () => {
    render(<Tensors slots={[input, output]} columns={6} />);
    expect(screen.getByRole("button", { name: "output.0" }).getAttribute("aria-pressed")).toBe("true");
    expect(screen.getByTestId("tensors").textContent).toContain("0.993044");
    expect(screen.getAllByRole("img")).toHaveLength(3);
    expect(screen.getByTestId("tensors").textContent).toContain("row 8, column 57");
    fireEvent.click(screen.getByRole("button", { name: "input.2" }));
    expect(screen.getAllByRole("img")).toHaveLength(1); // nothing differs, so nowhere
  });

  it("never calls a cosine below 1 one", () => {
    render(<Tensors slots={[slot({ tensor: measured({ cosine: 0.99999999 }) })]} columns={6} />);
    expect(screen.getByTestId("tensors").textContent).toContain("< 1");
  });

  it("says of a file that could not be used which and why", () => {
    const fault = { side: "left", file: "a.pt", code: "tensor_truncated", params: { size: 7 }, message: "It breaks off." } as const;
    render(<Tensors slots={[slot({ tensor: { state: "broken", fault } })]} columns={6} />);
    expect(screen.getByTestId("tensors").textContent).toContain("a.pt could not be used");
  });

  it("is not there without tensors", () => {
    render(<Tensors slots={[slot({})]} columns={6} />);
    expect(screen.queryByTestId("tensors")).toBeNull();
  });
});
