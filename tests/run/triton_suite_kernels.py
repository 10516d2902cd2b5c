"""Kernels in the shapes that Triton's tutorials teach. triton_suite.py loads this file twice: plain, and with polls."""
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def asin(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, libdevice.asin(tl.load(x + at, mask=mask)), mask=mask)


@triton.jit
def add_in_turn(x, y, out, n, BLOCK: tl.constexpr):
    tl.extra.cuda.gdc_wait()
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    total = tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + at, total, mask=mask)


@triton.jit
def softmax(out, x, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * columns + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@triton.jit
def tile_of(number, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Tiles in groups of rows, so that neighbours share what the second cache holds."""
    across = tl.cdiv(N, BN)
    first = number // (GROUP * across) * GROUP
    height = min(tl.cdiv(M, BM) - first, GROUP)
    within = number % (GROUP * across)
    return first + within % height, within // height


@triton.jit
def leaky(values):
    return tl.where(values >= 0, values, 0.01 * values)


@triton.jit
def matmul(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, LEAKY: tl.constexpr):
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, GROUP)
    rows, columns, inner = (row * BM + tl.arange(0, BM)) % M, (column * BN + tl.arange(0, BN)) % N, tl.arange(0, BK)
    left = a + rows[:, None] * am + inner[None, :] * ak
    right = b + inner[:, None] * bk + columns[None, :] * bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(left, mask=inner[None, :] < K - k * BK, other=0.0)
        y = tl.load(right, mask=inner[:, None] < K - k * BK, other=0.0)
        total = tl.dot(x, y, total)
        left += BK * ak
        right += BK * bk
    if LEAKY:
        total = leaky(total)
    rows, columns = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * cm + columns[None, :] * cn, total.to(c.dtype.element_ty), mask=mask)


@triton.jit
def matmul_persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, SMS: tl.constexpr, FLATTEN: tl.constexpr):
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles, SMS, flatten=FLATTEN):
        row, column = tile_of(tile, M, N, BM, BN, GROUP)
        rows, columns, inner = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
        rows, columns = tl.where(rows < M, rows, 0), tl.where(columns < N, columns, 0)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            at = k * BK + inner
            x = tl.load(a + rows[:, None] * K + at[None, :], mask=inner[None, :] < K - k * BK, other=0.0)
            y = tl.load(b + at[:, None] + columns[None, :] * K, mask=inner[:, None] < K - k * BK, other=0.0)
            total = tl.dot(x, y, total)
        rows, columns = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


@triton.jit
def matmul_by_descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, WARPS: tl.constexpr):
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, GROUP)
    left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    right = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    out = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(tl.cdiv(K, BK), warp_specialize=WARPS):
        total = tl.dot(left.load([row * BM, k * BK]), right.load([column * BN, k * BK]).T, total)
    out.store([row * BM, column * BN], total.to(c.dtype.element_ty))


@triton.jit
def matmul_persistent_by_descriptors(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, SMS: tl.constexpr, FLATTEN: tl.constexpr, WARPS: tl.constexpr
):
    left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    right = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    out = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles, SMS, flatten=FLATTEN, warp_specialize=WARPS):
        row, column = tile_of(tile, M, N, BM, BN, GROUP)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            total = tl.dot(left.load([row * BM, k * BK]), right.load([column * BN, k * BK]).T, total)
        out.store([row * BM, column * BN], total.to(c.dtype.element_ty))


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, tl.load(x + at, mask=mask) / (1 - p), 0.0), mask=mask)


@triton.jit
def layer_norm(x, out, weight, bias, mean_out, scale_out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * columns
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
        value = tl.where(at < columns, value - mean, 0.0)
        total += value * value
    scale = 1 / tl.sqrt(tl.sum(total, axis=0) / columns + eps)
    tl.store(mean_out + row, mean)
    tl.store(scale_out + row, scale)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        value = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row * columns + at, (value - mean) * scale * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask), mask=mask)


@triton.jit
def layer_norm_back(dx, dy, dw, db, x, weight, means, scales, locks, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=0).to(tl.float32)
    up = tl.load(dy + row * columns + at, mask=mask, other=0).to(tl.float32)
    w = tl.load(weight + at, mask=mask).to(tl.float32)
    scale = tl.load(scales + row)
    normal = tl.where(mask, (value - tl.load(means + row)) * scale, 0.0)
    weighted = tl.where(mask, w * up, 0.0)
    first, second = tl.sum(normal * weighted, axis=0) / columns, tl.sum(weighted, axis=0) / columns
    tl.store(dx + row * columns + at, (weighted - (normal * first + second)) * scale, mask=mask)
    # Rows of one group add to one row of sums, one at a time.
    group = row % GROUP
    lock = locks + group
    was_used = locks + GROUP + group
    part_w, part_b = (up * normal).to(w.dtype), up.to(w.dtype)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(was_used) == 0:
        tl.atomic_xchg(was_used, 1)
    else:
        part_w += tl.load(dw + group * columns + at, mask=mask)
        part_b += tl.load(db + group * columns + at, mask=mask)
    tl.store(dw + group * columns + at, part_w, mask=mask)
    tl.store(db + group * columns + at, part_b, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def layer_norm_sums(parts, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, rows, BM):
        row = start + tl.arange(0, BM)
        mask = (row[:, None] < rows) & (at[None, :] < columns)
        total += tl.load(parts + row[:, None] * columns + at[None, :], mask=mask, other=0.0)
    tl.store(out + at, tl.sum(total, axis=0), mask=at < columns)


@triton.jit
def grouped_matmul(a_list, b_list, c_list, sizes, groups, SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tile = tl.program_id(0)
    before = 0
    for group in range(groups):
        M, N, K = tl.load(sizes + 3 * group), tl.load(sizes + 3 * group + 1), tl.load(sizes + 3 * group + 2)
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * across
        while tile >= before and tile < before + tiles:
            a = tl.load(a_list + group).to(tl.pointer_type(tl.float16))
            b = tl.load(b_list + group).to(tl.pointer_type(tl.float16))
            c = tl.load(c_list + group).to(tl.pointer_type(tl.float16))
            row, column = (tile - before) // across, (tile - before) % across
            rows, columns, inner = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
            left, right = a + rows[:, None] * K + inner[None, :], b + inner[:, None] * N + columns[None, :]
            total = tl.zeros((BM, BN), dtype=tl.float32)
            for _ in range(0, tl.cdiv(K, BK)):
                total += tl.dot(tl.load(left), tl.load(right))
                left += BK
                right += BK * N
            tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))
            tile += SMS
        before += tiles


@triton.jit
def attention_inner(
    total, sums, tops, q, keys, values, base, row, scale, LENGTH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, STAGE: tl.constexpr, WARPS: tl.constexpr
):
    """Blocks of keys in front of the diagonal (1), on it (2), or all (3)."""
    if STAGE == 1:
        first, last = 0, row * BM
    elif STAGE == 2:
        first, last = row * BM, (row + 1) * BM
        first = tl.multiple_of(first, BM)
    else:
        first, last = 0, LENGTH
    rows = row * BM + tl.arange(0, BM)
    for start in tl.range(first, last, BN, warp_specialize=WARPS):
        start = tl.multiple_of(start, BN)
        products = tl.dot(q, keys.load([base + start, 0]).T)
        if STAGE == 2:
            mask = rows[:, None] >= start + tl.arange(0, BN)[None, :]
            products = products * scale + tl.where(mask, 0, -1.0e6)
            top = tl.maximum(tops, tl.max(products, 1))
            products -= top[:, None]
        else:
            top = tl.maximum(tops, tl.max(products, 1) * scale)
            products = products * scale - top[:, None]
        powers = tl.math.exp2(products)
        factor = tl.math.exp2(tops - top)
        total = tl.dot(powers.to(q.dtype), values.load([base + start, 0]), total * factor[:, None])
        sums = sums * factor + tl.sum(powers, 1)
        tops = top
    return total, sums, tops


@triton.jit
def attention(
    q, k, v, out, logs, scale, ROWS, LENGTH: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, WARPS: tl.constexpr
):
    row, head = tl.program_id(0), tl.program_id(1)
    queries = tl.make_tensor_descriptor(q, shape=[ROWS, D], strides=[D, 1], block_shape=[BM, D])
    keys = tl.make_tensor_descriptor(k, shape=[ROWS, D], strides=[D, 1], block_shape=[BN, D])
    values = tl.make_tensor_descriptor(v, shape=[ROWS, D], strides=[D, 1], block_shape=[BN, D])
    results = tl.make_tensor_descriptor(out, shape=[ROWS, D], strides=[D, 1], block_shape=[BM, D])
    base = head * LENGTH
    tops = tl.zeros([BM], dtype=tl.float32) - float("inf")
    sums = tl.zeros([BM], dtype=tl.float32) + 1.0
    total = tl.zeros([BM, D], dtype=tl.float32)
    # exp2 takes the place of exp.
    scale *= 1.44269504
    tile = queries.load([base + row * BM, 0])
    if CAUSAL:
        total, sums, tops = attention_inner(total, sums, tops, tile, keys, values, base, row, scale, LENGTH, BM, BN, D, 1, WARPS)
        total, sums, tops = attention_inner(total, sums, tops, tile, keys, values, base, row, scale, LENGTH, BM, BN, D, 2, WARPS)
    else:
        total, sums, tops = attention_inner(total, sums, tops, tile, keys, values, base, row, scale, LENGTH, BM, BN, D, 3, WARPS)
    tl.store(logs + base + row * BM + tl.arange(0, BM), tops + tl.math.log2(sums))
    results.store([base + row * BM, 0], (total / sums[:, None]).to(out.dtype.element_ty))


@triton.jit
def attention_back_keys(q, k, v, up, dk, dv, logs, deltas, scale, LENGTH, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """One block of keys and values, all queries on and below the diagonal."""
    base = (tl.program_id(1) * LENGTH).to(tl.int64)
    columns, depth = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D)
    key = tl.load(k + (base + columns[:, None]) * D + depth[None, :])
    value = tl.load(v + (base + columns[:, None]) * D + depth[None, :])
    of_keys, of_values = tl.zeros([BN, D], dtype=tl.float32), tl.zeros([BN, D], dtype=tl.float32)
    for start in range(tl.program_id(0) * BN // BM * BM, LENGTH, BM):
        rows = start + tl.arange(0, BM)
        queries = tl.load(q + (base + rows[None, :]) * D + depth[:, None])
        powers = tl.math.exp2(tl.dot(key, queries) * (scale * 1.44269504) - tl.load(logs + base + rows)[None, :])
        powers = tl.where(rows[None, :] >= columns[:, None], powers, 0.0)
        above = tl.load(up + (base + rows[:, None]) * D + depth[None, :])
        of_values += tl.dot(powers.to(q.dtype.element_ty), above)
        slopes = powers * (tl.dot(value, tl.trans(above)).to(tl.float32) - tl.load(deltas + base + rows)[None, :])
        of_keys += tl.dot(slopes.to(q.dtype.element_ty), tl.trans(queries))
    tl.store(dk + (base + columns[:, None]) * D + depth[None, :], (of_keys * scale).to(dk.dtype.element_ty))
    tl.store(dv + (base + columns[:, None]) * D + depth[None, :], of_values.to(dv.dtype.element_ty))


@triton.jit
def attention_back_queries(q, k, v, up, dq, logs, deltas, scale, LENGTH, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """One block of queries, all keys up to the diagonal."""
    base = (tl.program_id(1) * LENGTH).to(tl.int64)
    rows, depth = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    queries = tl.load(q + (base + rows[:, None]) * D + depth[None, :])
    above = tl.load(up + (base + rows[:, None]) * D + depth[None, :])
    log, delta = tl.load(logs + base + rows), tl.load(deltas + base + rows)
    total = tl.zeros([BM, D], dtype=tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        columns = start + tl.arange(0, BN)
        key = tl.load(k + (base + columns[None, :]) * D + depth[:, None])
        value = tl.load(v + (base + columns[None, :]) * D + depth[:, None])
        powers = tl.math.exp2(tl.dot(queries, key) * (scale * 1.44269504) - log[:, None])
        powers = tl.where(rows[:, None] >= columns[None, :], powers, 0.0)
        slopes = powers * (tl.dot(above, value).to(tl.float32) - delta[:, None])
        total += tl.dot(slopes.to(q.dtype.element_ty), tl.trans(key))
    tl.store(dq + (base + rows[:, None]) * D + depth[None, :], (total * scale).to(dq.dtype.element_ty))
