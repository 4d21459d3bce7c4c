// Calls and little else: the naive Fibonacci numbers.

__attribute__((export_name("run"))) unsigned run(unsigned n) {
  return n < 2 ? n : run(n - 1) + run(n - 2);
}
