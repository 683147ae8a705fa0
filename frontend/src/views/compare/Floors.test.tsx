import { render, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { slot } from "./documents-for-tests";
import { Floors } from "./Floors";

describe("the noise floor of a row", () => {
  it("stands in one line with where it comes from, and opens with the keyboard", () => {
    render(<Floors slots={[slot({ floor: 0.017, floor_source: "frozen", grade: "diverged" })]} />);
    const summary = screen.getByText(/Noise floor of output\.0/);
    expect(summary.textContent).toBe("Noise floor of output.0: 1.70\u00a0%, frozen at the first divergence");
    expect(summary.tagName).toBe("SUMMARY");
    expect(summary.parentElement?.tagName).toBe("DETAILS");
  });

  it("is that of the output that differs, with every other slot under its own source", () => {
    const slots = [
      slot({ group: "input", slot: "input.0", floor: 0.004, floor_source: "profile" }),
      slot({ slot: "output.0", floor: 0.008, floor_source: "measured" }),
      slot({ slot: "output.1", floor: 0.009, floor_source: "measured", grade: "diverged", order: 2 }),
    ];
    render(<Floors slots={slots} />);
    const found = screen.getByTestId("floors");
    expect(found.querySelector("summary")?.textContent).toContain("output.1: 0.90\u00a0%");
    expect([...found.querySelectorAll("dt")].map((own) => own.textContent)).toEqual([
      "measured on this pair of dumps",
      "default of the noise profile",
    ]);
    expect(
      within(found)
        .getAllByRole("listitem", { hidden: true })
        .map((own) => own.textContent),
    ).toEqual(["output.0 0.80\u00a0%", "output.1 0.90\u00a0%", "input.0 0.40\u00a0%"]);
  });

  it("is not spoken of where none is applied", () => {
    render(<Floors slots={[slot({ group: "parameters", floor_source: null }), slot({ floor: null, floor_source: null })]} />);
    expect(screen.queryByTestId("floors")).toBeNull();
  });
});
