package serve

import (
	"math"
	"testing"
	"testing/fstest"
)

const gib = 1 << 30

func TestAvailableMemory(t *testing.T) {
	t.Parallel()
	const meminfo = "MemTotal:        8388608 kB\nMemFree:         1 kB\n"
	tests := []struct {
		name        string
		files       map[string]string
		want        int64
		wantLimited bool
	}{
		{name: "no cgroup", want: 8 * gib},
		{name: "v2 in a container", want: gib, wantLimited: true, files: map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}},
		{name: "v2 without limit", want: 8 * gib, files: map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}},
		{name: "v2, limit above", want: 2 * gib, wantLimited: true, files: map[string]string{
			"proc/self/cgroup":                                 "0::/weir.slice/weir.service\n",
			"sys/fs/cgroup/weir.slice/memory.max":              "2147483648\n",
			"sys/fs/cgroup/weir.slice/weir.service/memory.max": "max\n"}},
		{name: "v2, lowest counts", want: gib, wantLimited: true, files: map[string]string{
			"proc/self/cgroup":             "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max":   "1073741824\n",
			"sys/fs/cgroup/a/b/memory.max": "2147483648\n"}},
		{name: "v2, path of the host", want: gib, wantLimited: true, files: map[string]string{
			"proc/self/cgroup": "0::/../../kubepods/pod1\n", "sys/fs/cgroup/memory.max": "1073741824\n"}},
		{name: "v1", want: gib, wantLimited: true, files: map[string]string{
			"proc/self/cgroup": "9:cpu,cpuacct:/x\n4:memory:/docker/7\n",
			"sys/fs/cgroup/memory/docker/7/memory.limit_in_bytes": "1073741824\n"}},
		{name: "v1 in a container", want: gib, wantLimited: true, files: map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/7\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n"}},
		{name: "v1 without limit", want: 8 * gib, files: map[string]string{
			"proc/self/cgroup":                           "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}},
		{name: "limit above the machine", want: 8 * gib, files: map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1099511627776\n"}},
		{name: "malformed", want: 8 * gib, files: map[string]string{"proc/self/cgroup": "nonsense\n::\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{"proc/meminfo": {Data: []byte(meminfo)}}
			for name, content := range tt.files {
				root[name] = &fstest.MapFile{Data: []byte(content)}
			}
			got, limited, err := availableMemory(root)
			if err != nil || got != tt.want || limited != tt.wantLimited {
				t.Errorf("availableMemory = %d, %v, %v, want %d, %v", got, limited, err, tt.want, tt.wantLimited)
			}
		})
	}
}

func TestAvailableMemoryNotTold(t *testing.T) {
	t.Parallel()
	for _, root := range []fstest.MapFS{
		{},
		{"proc/meminfo": {Data: []byte("MemFree: 1 kB\n")}},
		{"proc/meminfo": {Data: []byte("MemTotal: much kB\n")}},
	} {
		if got, _, err := availableMemory(root); err == nil {
			t.Errorf("availableMemory = %d, want an error", got)
		}
	}
}

func TestSettleMemory(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		limit       MemoryLimit
		available   int64
		limited     bool
		inForce     int64
		want        memoryPlan
		wantCrowded bool
		wantErr     bool
	}{
		{name: "a quarter of the cgroup", limit: MemoryLimit{Percent: 25}, available: 4000, limited: true,
			inForce: math.MaxInt64, want: memoryPlan{store: 1000, goSoft: 3600}},
		{name: "of the machine: the runtime is left alone", limit: MemoryLimit{Percent: 25}, available: 4000,
			inForce: math.MaxInt64, want: memoryPlan{store: 1000}},
		{name: "GOMEMLIMIT stays, and the share is of it", limit: MemoryLimit{Percent: 25}, available: 4000,
			limited: true, inForce: 2000, want: memoryPlan{store: 500, goSoft: 2000}},
		{name: "GOMEMLIMIT above the cgroup", limit: MemoryLimit{Percent: 25}, available: 4000, limited: true,
			inForce: 8000, want: memoryPlan{store: 1000, goSoft: 8000}},
		{name: "bytes", limit: MemoryLimit{Bytes: 64}, available: 4000, inForce: math.MaxInt64,
			want: memoryPlan{store: 64}},
		{name: "crowded", limit: MemoryLimit{Bytes: 3001}, available: 4000, inForce: math.MaxInt64,
			want: memoryPlan{store: 3001}, wantCrowded: true},
		{name: "just not crowded", limit: MemoryLimit{Bytes: 3000}, available: 4000, inForce: math.MaxInt64,
			want: memoryPlan{store: 3000}},
		{name: "all there is", limit: MemoryLimit{Percent: 100}, available: 4000, inForce: math.MaxInt64,
			want: memoryPlan{store: 4000}, wantErr: true},
		{name: "more than there is", limit: MemoryLimit{Bytes: gib}, available: 4000, inForce: math.MaxInt64,
			want: memoryPlan{store: gib}, wantErr: true},
	}
	for _, tt := range tests {
		got, crowded, err := settleMemory(&tt.limit, tt.available, tt.limited, tt.inForce)
		if got != tt.want || crowded != tt.wantCrowded || (err != nil) != tt.wantErr {
			t.Errorf("%s: %+v, %v, %v, want %+v, %v, error %v", tt.name, got, crowded, err,
				tt.want, tt.wantCrowded, tt.wantErr)
		}
	}
}

func TestMemoryLimitNotations(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		limit MemoryLimit
		text  string
	}{
		"25%":     {MemoryLimit{Percent: 25}, "25%"},
		"1%":      {MemoryLimit{Percent: 1}, "1%"},
		"64Mi":    {MemoryLimit{Bytes: 64 << 20}, "64Mi"},
		"1G":      {MemoryLimit{Bytes: 1e9}, "1000000000"},
		"1048576": {MemoryLimit{Bytes: 1 << 20}, "1Mi"},
	} {
		var l MemoryLimit
		if err := l.Set(in); err != nil || l != want.limit || l.String() != want.text {
			t.Errorf("Set(%q) = %+v, %v, String %q, want %+v, %q", in, l, err, l.String(), want.limit, want.text)
		}
	}
	for _, in := range []string{"", "0", "-1Mi", "0%", "101%", "%", "x%", "64MiB", "much", "1e30"} {
		l := MemoryLimit{Percent: 25}
		if err := l.Set(in); err == nil {
			t.Errorf("Set(%q) = %+v, want an error", in, l)
		} else if l.Percent != 25 {
			t.Errorf("Set(%q) failed and changed the limit", in)
		}
	}
}
