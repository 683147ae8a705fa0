import { Link } from "wouter";
import { useI18n } from "../i18n";
import { Header } from "../ui/header";
import { Notice } from "../ui/notice";
import { useTitle } from "../ui/use-title";

export function NotFoundPage() {
  const { t } = useI18n();
  useTitle(t.notFound.title);
  return (
    <>
      <Header />
      <main id="main" tabIndex={-1}>
        <Notice title={t.notFound.title} actions={<Link href="/">{t.common.back}</Link>}>
          <p>{t.notFound.text}</p>
        </Notice>
      </main>
    </>
  );
}
