package policy

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
)

func TestSpecialAddresses(t *testing.T) {
	t.Parallel()
	for kind, addrs := range map[string][]string{
		"this network":         {"0.0.0.0", "0.1.2.3"},
		"loopback":             {"127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"},
		"private":              {"10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "fc00::1", "fd12:3456::1", "::ffff:10.0.0.1"},
		"shared by carriers":   {"100.64.0.1", "100.127.255.255"},
		"link-local":           {"169.254.0.1", "169.254.255.255", "fe80::1", "febf::1"},
		"site-local":           {"fec0::1"},
		"metadata service":     {"169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254", "::ffff:a9fe:a9fe"},
		"protocol assignments": {"192.0.0.1", "192.0.0.170", "2001:1::1", "2001:1ff::1"},
		"documentation":        {"192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1", "3fff:fff::1"},
		"6to4 relays":          {"192.88.99.1"},
		"benchmarks":           {"198.18.0.1", "198.19.255.255"},
		"multicast":            {"224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"},
		"reserved":             {"240.0.0.1", "255.255.255.255"},
		"unspecified":          {"::"},
		"IPv4-compatible":      {"::127.0.0.1", "::8.8.8.8"},
		"IPv4-translated":      {"::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8"},
		"NAT64":                {"64:ff9b::7f00:1", "64:ff9b::8.8.8.8"},
		"local NAT64":          {"64:ff9b:1::1"},
		"discard":              {"100::1"},
		"Teredo":               {"2001:0:1::1"},
		"6to4":                 {"2002:7f00:1::", "2002:808:808::"},
		"segment routing":      {"5f00::1"},
		"not assigned":         {"1::1", "4000::1", "9000::1", "e000::1", "100:0:0:1::1", "64:ff9b:2::1"},
	} {
		for _, text := range addrs {
			addr := netip.MustParseAddr(text)
			err := (&Policy{}).JudgeAddr(addr)
			if e, ok := errors.AsType[*SpecialError](err); !ok || e.Kind != kind {
				t.Errorf("%s: got %v, want special (%s)", text, err, kind)
			}
			if kind == "metadata service" || kind == "multicast" && addr.Is6() {
				continue
			}
			if _, tunnels := embedded(addr.Unmap()); tunnels {
				continue
			}
			p := &Policy{AllowPrivate: []netip.Prefix{netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())}}
			if err := p.JudgeAddr(addr); err != nil {
				t.Errorf("%s is denied although it is allowed: %v", text, err)
			}
		}
	}
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "172.15.0.1", "172.32.0.0",
		"192.0.1.1", "192.31.196.1", "192.167.1.1", "198.17.255.255", "198.20.0.0", "223.255.255.255", "::ffff:8.8.8.8", "2001:200::1", "2001:4860:4860::8888", "2606:4700::1111", "3ffe:ffff::1",
	} {
		if err := (&Policy{}).JudgeAddr(netip.MustParseAddr(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, addr := range []netip.Addr{{}, netip.MustParseAddr("fe80::1%lo"), netip.MustParseAddr("2606:4700::1111%eth0")} {
		if err := (&Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("fe80::/10")}}).JudgeAddr(addr); err == nil {
			t.Errorf("%v is allowed", addr)
		}
	}
}

// Allowed ranges don't open the metadata service in them, or what lies behind a
// translator.
func TestAllowPrivate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, addr, private string
		want                bool
	}{
		{"in the range", "10.1.2.3", "10.0.0.0/8", true},
		{"outside of it", "11.1.2.3", "127.0.0.0/8", true},
		{"another private one", "192.168.1.1", "10.0.0.0/8", false},
		{"mapped", "::ffff:10.1.2.3", "10.0.0.0/8", true},
		{"metadata in a range", "169.254.169.254", "169.254.0.0/16", false},
		{"metadata of Alibaba", "100.100.100.200", "100.64.0.0/10", false},
		{"beside it", "100.100.100.201", "100.64.0.0/10", true},
		{"metadata by itself", "169.254.169.254", "169.254.169.254/32", true},
		{"NAT64 to the public", "64:ff9b::8.8.8.8", "64:ff9b::/96", true},
		{"NAT64 to loopback", "64:ff9b::127.0.0.1", "64:ff9b::/96", false},
		{"NAT64 to metadata", "64:ff9b::169.254.169.254", "64:ff9b::/96", false},
		{"6to4 to a private one", "2002:a00:1::1", "2002::/16", false},
		{"Teredo of loopback", "2001:0:1:1:0:0:80ff:fffe", "2001::/32", false},
		{"IPv4-compatible", "::127.0.0.1", "::/96", false},
	} {
		p := &Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix(tt.private)}}
		if err := p.JudgeAddr(netip.MustParseAddr(tt.addr)); (err == nil) != tt.want {
			t.Errorf("%s: %s with %s: %v", tt.name, tt.addr, tt.private, err)
		}
	}
}

func TestOwnAddresses(t *testing.T) {
	t.Parallel()
	p := &Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("8.8.8.8/32")}}
	if err := p.JudgeOwn(netip.MustParseAddr("::ffff:8.8.8.8")); err != nil {
		t.Error(err)
	}
	if err := p.JudgeOwn(netip.MustParseAddr("8.8.4.4")); err == nil {
		t.Error("an address of this machine is allowed")
	}
}

func TestParsePrefix(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"10.0.0.0/8", "127.0.0.0/8", "127.0.0.1", "fd00::/8", "fc00::/7", "::1", "169.254.169.254", "64:ff9b::/96"} {
		if p, err := ParsePrefix(text); err != nil || !p.IsValid() {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
	for text, want := range map[string]string{
		"": "not a range", "localhost": "not a range", "10.0.0.0/33": "not a range", "10.0.0.1/8": "not the beginning",
		"0.0.0.0/0": "too wide", "::/0": "too wide", "0.0.0.0/7": "too wide", "::ffff:10.0.0.0/104": "IPv4 in IPv6", "::ffff:10.0.0.1": "IPv4 in IPv6",
		"fe80::1%lo": "not a range",
	} {
		_, err := ParsePrefix(text)
		if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Everything that package netip considers not public is special, and an IPv4
// address is judged the same however it is written.
func TestAddressesProperty(t *testing.T) {
	t.Parallel()
	bytes4, bytes16 := rapid.SliceOfN(rapid.Byte(), 4, 4), rapid.SliceOfN(rapid.Byte(), 16, 16)
	none := &Policy{}
	rapid.Check(t, func(t *rapid.T) {
		b := bytes4.Draw(t, "IPv4")
		v4 := netip.AddrFrom4([4]byte(b))
		open := none.JudgeAddr(v4) == nil
		if open && (!v4.IsGlobalUnicast() || v4.IsPrivate() || v4.IsLoopback()) {
			t.Fatalf("%v is allowed", v4)
		}
		mapped := netip.AddrFrom16(v4.As16())
		if got := none.JudgeAddr(mapped) == nil; got != open {
			t.Fatalf("%v is allowed: %t, %v: %t", v4, open, mapped, got)
		}
		v6 := netip.AddrFrom16([16]byte(bytes16.Draw(t, "IPv6")))
		if none.JudgeAddr(v6) == nil && (!v6.Unmap().IsGlobalUnicast() || v6.Unmap().IsPrivate()) {
			t.Fatalf("%v is allowed", v6)
		}
		tunnels := &Policy{AllowPrivate: []netip.Prefix{
			netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("::ffff:0:0:0/96"),
		}}
		var nat64, sixToFour, teredo, translated [16]byte
		copy(nat64[:], []byte{0, 0x64, 0xff, 0x9b})
		copy(nat64[12:], b)
		copy(sixToFour[:], []byte{0x20, 0x02, b[0], b[1], b[2], b[3]})
		copy(teredo[:], []byte{0x20, 0x01})
		copy(translated[8:], []byte{0xff, 0xff, 0, 0})
		copy(translated[12:], b)
		for i := range b {
			teredo[12+i] = ^b[i]
		}
		for _, through := range [][16]byte{nat64, sixToFour, teredo, translated} {
			a := netip.AddrFrom16(through)
			if none.JudgeAddr(a) == nil {
				t.Fatalf("%v is allowed", a)
			}
			if got := tunnels.JudgeAddr(a) == nil; got != open {
				t.Fatalf("%v is allowed: %t, behind %v: %t", v4, open, a, got)
			}
		}
	})
}
