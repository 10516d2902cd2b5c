//@ about: sizes that are types: bounds such as size<0>(tile), templates that call themselves with the elements of a tuple, and a comparison that does not ask for the value
//@ entry: typed_sizes
//@ grid: 40
//@ block: 128
//@ arg: f32[20480] rand 71
//@ arg: f32[5120] zero
//@ arg: i32 160

template <auto v>
struct C {
  static constexpr auto value = v;
  using value_type = decltype(v);
  __host__ __device__ constexpr operator value_type() const noexcept { return value; }
};

template <class... Parts>
struct tuple {};

template <class T>
struct is_tuple {
  static constexpr bool value = false;
};
template <class... Parts>
struct is_tuple<tuple<Parts...>> {
  static constexpr bool value = true;
};

template <class... Parts, class F>
__host__ __device__ constexpr auto apply(const tuple<Parts...> &, F f) {
  return f(Parts{}...);
}

// How many leaves a tuple of tuples has: each call hands on an element.
template <class T, class Unit>
__host__ __device__ constexpr auto leaves(const T &shape, const Unit &unit) {
  if constexpr (is_tuple<T>::value) {
    return apply(shape, [&](const auto &...part) { return (0 + ... + leaves(part, unit)); });
  } else {
    return unit;
  }
}

// The same type again: what ends this is a value.
template <class T>
__device__ int halvings(const T &n) {
  return n < 2 ? 0 : 1 + halvings(n / 2);
}

template <int Rows, int Columns>
struct tile_of {
  float at[Rows][Columns];
};
template <int Mode, int Rows, int Columns>
__host__ __device__ constexpr C<Mode == 0 ? Rows : Columns> size(const tile_of<Rows, Columns> &) {
  return {};
}

// An integral constant whose comparison is none: the loop below ends at nine, whatever its value says.
struct until_nine : C<4> {};
__host__ __device__ constexpr bool operator<(int i, until_nine) { return i != 9; }
__host__ __device__ constexpr until_nine last(const tile_of<2, 4> &) { return {}; }

__global__ void typed_sizes(const float *in, float *out, int rounds) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  tile_of<2, 4> tile;
#pragma unroll
  for (int row = 0; row < size<0>(tile); ++row) {
#pragma unroll
    for (int column = 0; column < size<1>(tile); ++column) tile.at[row][column] = in[at * 4 + column] * (row + 1);
  }
  float sum = 0.0f;
  for (int round = 0; round < rounds; ++round) {
    for (int row = 0; row < size<0>(tile); ++row)
      for (int column = 0; column < size<1>(tile); ++column) sum += tile.at[row][column] * (round & 3);
  }
  int steps = 0;
  for (int i = 0; i < last(tile); i += 3) ++steps;
  out[at] = sum + leaves(tuple<tuple<C<1>, C<2>>, tuple<tuple<C<3>>>>{}, at & 1) + halvings(rounds + at) + steps;
}
