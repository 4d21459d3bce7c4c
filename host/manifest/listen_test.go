package manifest

import "testing"

func TestCheckListen(t *testing.T) {
	t.Parallel()
	tests := []struct {
		addr          string
		alone, behind bool // accepted without and with a proxy in front
	}{
		{"127.0.0.1:7070", true, true},
		{"127.8.9.1:0", true, true},
		{"[::1]:7070", true, true},
		{"[::ffff:127.0.0.1]:7070", true, true},
		{"localhost:7070", true, true},
		{"0.0.0.0:7070", false, true},
		{"[::]:7070", false, true},
		{":7070", false, true},
		{"10.1.2.3:7070", false, true},
		{"localhost.example.com:7070", false, true},
		{"127.0.0.1.example.com:7070", false, true},
		{"127.0.0.1", false, false},
		{"127.0.0.1:", false, false},
		{"127.0.0.1:http", false, false},
		{"127.0.0.1:65536", false, false},
		{"127.0.0.1:-1", false, false},
		{"http://127.0.0.1:7070", false, false},
		{"exa mple:1", false, false},
		{"::1:7070", false, false},
		{"", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.addr, func(t *testing.T) {
			t.Parallel()
			if err := CheckListen(tt.addr, false); (err == nil) != tt.alone {
				t.Errorf("alone: %v", err)
			}
			if err := CheckListen(tt.addr, true); (err == nil) != tt.behind {
				t.Errorf("behind a proxy: %v", err)
			}
		})
	}
}
