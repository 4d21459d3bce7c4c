// The smallest worker: it takes nothing and returns nothing.
__attribute__((export_name("jh_run"))) long long run(int len) {
  (void)len;
  return 0;
}
