"""What to try next for each cause: the step that would tell it from the others, with the dumper's settings where another dump is needed."""

from __future__ import annotations

from collections.abc import Sequence

from compare.engine.diagnose.words import Text, both

# In the texts {modules} is the list of modules to dump, as the dumper's settings take it.
TENSORS = both(
    'Dump the tensors of the suspects on both sides: "task": "tensor", "level": "mix", "list": [{modules}]',
    '两侧采集可疑模块的真实张量："task": "tensor", "level": "mix", "list": [{modules}]',
)
ADVICE: dict[str, Text] = {
    "weight_not_finite": both("Check the checkpoint file itself for NaN before it is loaded", "先检查权重文件本身是否含有 NaN"),
    "stale_weights": both(
        "Compare the training step of both dumps; dump again right after a weight update",
        "核对两份数据的训练步；在权重同步完成后立即重新采集",
    ),
    "weight_changed": both("Compare this parameter in the two checkpoint files", "比较两个权重文件中的这个参数"),
    "weight_not_synchronised": both(
        "Compare this parameter on disk, as it is sent and as it is received; check the order of q, k, v and of "
        "gate, up where they are fused",
        "逐段比较该参数：磁盘上的、发送的、接收到的；融合权重请核对 q、k、v 与 gate、up 的排列",
    ),
    "weight_changed_after_loading": both(
        "Dump the parameters once right after loading and once before the forward pass", "加载后与前向前各采集一次参数"
    ),
    "constant_factor": both(
        "Look for the number in both configurations (routed_scaling_factor, logits_scaling, residual_multiplier, embedding_multiplier)",
        "在两侧配置中查找这个数（routed_scaling_factor、logits_scaling、residual_multiplier、embedding_multiplier）",
    ),
    "norm_epsilon": both(
        "Compare rms_norm_eps of both configurations; then overwrite the norm's input on one side by the other side's tensor (load in the "
        'dumper\'s settings: "modules": [{modules}], "dump_after_load": true) and see whether its output still differs',
        "核对两侧配置的 rms_norm_eps；再用另一侧的张量覆盖该归一化的输入"
        '（采集配置中的 load："modules": [{modules}]，"dump_after_load": true），看输出是否仍不同',
    ),
    "rotary_embedding": both(
        "Compare rope_theta and rope_scaling; dump at level mix, where rotated query and key are written: "
        '"level": "mix", "list": [{modules}]',
        '核对 rope_theta 与 rope_scaling；以 mix 级别重新采集，可得到旋转后的 query 与 key："level": "mix", "list": [{modules}]',
    ),
    "attention_mask": both(
        "Compare with a short prompt: a sliding window or padding shows only at some lengths, a missing mask at all",
        "换短提示词再比：滑动窗口与填充只在某些长度出现，缺少掩码则处处出现",
    ),
    "softmax_scale": both(
        "Compare head_dim, query_pre_attn_scalar and mscale of both configurations",
        "核对两侧配置的 head_dim、query_pre_attn_scalar 与 mscale",
    ),
    "activation_function": both("Compare hidden_act of both configurations", "核对两侧配置的 hidden_act"),
    "residual_addition": both("Compare the dtype of the residual and residual_multiplier", "核对残差的数据类型与 residual_multiplier"),
    "linear_computation": TENSORS,
    "overflow": TENSORS,
    "reduction_missing": both(
        "Run with one rank a side: if the difference goes, the reduction is at fault; check reduce_results and the parallel groups",
        "两侧改为单卡再比：若差异消失即为归约问题；检查 reduce_results 与并行通信组",
    ),
    "expert_routing": both(
        "Dump the chosen experts (output of the router) as tensors on both sides and compare them token by token: {modules}",
        "两侧以张量方式采集路由器输出，逐词元比较所选专家：{modules}",
    ),
    "other_dtype": both(
        "Run the coarser side once in the finer dtype: if the difference goes, it is rounding and not a fault",
        "将精度较低的一侧改用较高精度运行一次：若差异消失，即为舍入而非错误",
    ),
    "quantised": both("Compare with quantisation switched off", "关闭量化后再比较"),
    "adapter_not_merged": both(
        "Compare once with the adapter switched off on both sides; check its scaling (alpha / r) and whether it was merged before the dump",
        "两侧关闭适配器各比一次；核对缩放系数（alpha / r）以及采集前是否已合并",
    ),
    "rotation_breaks_norms": both(
        "Run the rotary kernel of that side against a plain implementation on the dumped query",
        "用采集到的 query 将该侧的旋转算子与朴素实现对比",
    ),
    "positions_rounded": both("Keep positions in int64 up to the rotary embedding", "在旋转位置编码之前保持位置编号为 int64"),
    "gradient_only": both(
        'The forward pass agrees: look at the backward of this module, its hooks and gradient scaling; dump with "level": "mix"',
        '前向一致：请检查该模块的反向、钩子与梯度缩放；以 "level": "mix" 采集',
    ),
}


def advice_for(code: str, modules: Sequence[str]) -> Text | None:
    """The next step for a cause, about these modules (at most three are named)."""
    text = ADVICE.get(code)
    if text is None:
        return None
    named = ", ".join(f'"{module}"' for module in dict.fromkeys(modules[:3]))
    return both(text["en"].replace("{modules}", named), text["zh"].replace("{modules}", named))
