/** One line that parts in two at a mark: train above, inference below. */
export function Logo() {
  return (
    <svg width="18" height="18" viewBox="0 0 18 18" fill="none" strokeWidth="1.8" strokeLinecap="round" aria-hidden="true">
      <path stroke="var(--text)" d="M1.2 9H8" />
      <path stroke="var(--train)" d="M8 9c3.4 0 3.4-4.4 8.6-4.8" />
      <path stroke="var(--infer)" d="M8 9c3.4 0 3.4 4.4 8.6 4.8" />
      <circle cx="8" cy="9" r="2.1" fill="var(--bad)" />
    </svg>
  );
}
