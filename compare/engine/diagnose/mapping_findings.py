"""What became of the rules of a mapping file: how many hold, which found nothing, which contradict another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compare.engine.diagnose.case import Case
from compare.engine.diagnose.finding import MOST_MODULES, Finding
from compare.engine.diagnose.words import both, counted
from compare.engine.model import JsonObject


def mapping_findings(cases: Sequence[Case]) -> Iterator[Finding]:
    """A rule is *unused* where it found its modules on no rank."""
    applied = [case.sides.rules for case in cases]
    if not any(rules.rules for rules in applied):
        return
    unused = [rule for rule in applied[0].unused if all(rule in rules.unused for rules in applied)]
    contradicted = list({(rule["line"], rule["rule"]): rule for rules in applied for rule in rules.contradicted}.values())
    total = max(rules.rules for rules in applied)
    manual = sorted({name for rules in applied for name in rules.manual})
    apart = sorted({name for rules in applied for side in rules.unpaired for name in side})
    slots = max(len(rules.slots) for rules in applied)
    turned = any(rules.swapped for rules in applied)
    yield Finding(
        "mapping_used",
        "info",
        both(
            f"A mapping file with {counted(total, 'rule')} was used: it brings {counted(len(manual), 'module')} together that would not "
            f"meet otherwise and sets {len(apart)} apart; {counted(slots, 'pair')} of single slots"
            + ("; it was written with the sides the other way round" if turned else ""),
            f"使用了含 {total} 条规则的映射文件：让 {len(manual)} 个不会自动配对的模块对应起来，"
            f"取消了 {len(apart)} 个模块的配对；指定了 {slots} 对单独的输入输出" + ("；文件中左右两侧与这里相反，已对调" if turned else ""),
        ),
        [*manual, *apart][:MOST_MODULES],
        {"rules": total, "paired": len(manual), "apart": len(apart), "slots": slots, "swapped": turned},
    )
    if unused:
        yield Finding(
            "mapping_rule_unused",
            "warning",
            both(
                f"{counted(len(unused), 'rule')} of the mapping file {'matches' if len(unused) == 1 else 'match'} nothing here, "
                f"first line {unused[0]['line']}: {unused[0]['rule']}",
                f"映射文件中有 {len(unused)} 条规则在这里没有匹配到任何模块，第一条在第 {unused[0]['line']} 行：{unused[0]['rule']}",
            ),
            (),
            _evidence(unused),
        )
    if contradicted:
        yield Finding(
            "mapping_rule_contradicted",
            "warning",
            both(
                f"{counted(len(contradicted), 'rule')} of the mapping file "
                f"{'contradicts' if len(contradicted) == 1 else 'contradict'} a later one, which holds; "
                f"first line {contradicted[0]['line']}: "
                f"{contradicted[0]['rule']}",
                f"映射文件中有 {len(contradicted)} 条规则与后面的规则矛盾，以后面的为准；第一条在第 {contradicted[0]['line']} 行："
                f"{contradicted[0]['rule']}",
            ),
            (),
            _evidence(contradicted),
        )


def _evidence(rules: Sequence[JsonObject]) -> JsonObject:
    return {"rules": list(rules[:MOST_MODULES]), "count": len(rules)}
