package refill

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseKeys(t *testing.T) {
	t.Parallel()
	one, two := hex.EncodeToString(key(1)), hex.EncodeToString(key(2))
	long := strings.Repeat("ab", 64)
	var many []string
	for i := range maxKeys + 1 {
		many = append(many, hex.EncodeToString(key(byte(i))))
	}
	tests := []struct {
		name, content string
		want          [][]byte
		wantErr       string
	}{
		{"one", one, [][]byte{key(1)}, ""},
		{"newest first", one + "\n" + two + "\n", [][]byte{key(1), key(2)}, ""},
		{"empty lines and line ends", "\r\n\n" + one + "\r\n  \n\t" + two + " \n\n", [][]byte{key(1), key(2)}, ""},
		{"upper case", strings.ToUpper(long), [][]byte{[]byte(strings.Repeat("\xab", 64))}, ""},
		{"nothing", "", nil, "no key in it"},
		{"empty lines only", "\n\n", nil, "no key in it"},
		{"31 bytes", one[2:], nil, "line 1: a key of 31 bytes, need at least 32"},
		{"not hexadecimal", one + "\n\nzz" + two[2:], nil, "line 3: not hexadecimal"},
		{"odd length", one + "\n" + two + "a", nil, "line 2: not hexadecimal"},
		{"comment", "# keys\n" + one, nil, "line 1: not hexadecimal"},
		{"twice", one + "\n" + two + "\n" + one, nil, "line 3: this key was there before"},
		{"as many as may be", strings.Join(many[:maxKeys], "\n"), nil, ""},
		{"too many", strings.Join(many, "\n"), nil, "line 65: more than 64 keys"},
		{"too large", strings.Repeat("\n", maxSecretFile+1), nil, "larger than 65536 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseKeys([]byte(tt.content))
			if tt.wantErr != "" {
				if err == nil || err.Error() != tt.wantErr {
					t.Fatalf("error = %v, want %s", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); tt.want != nil && d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLoadKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	if _, err := LoadKeys(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(hex.EncodeToString(key(7)) + "\n")
	keys, err := LoadKeys(path)
	if err != nil || len(keys) != 1 {
		t.Fatalf("LoadKeys = %d keys, %v", len(keys), err)
	}
	write(strings.Repeat("x", maxSecretFile+1))
	if _, err := LoadKeys(path); err == nil {
		t.Error("a file that is too large was read")
	}
	if _, err := LoadKeys(t.TempDir()); err == nil {
		t.Error("a folder was read")
	}
}

// Errors never show what is in the file.
func FuzzParseKeys(f *testing.F) {
	f.Add([]byte(hex.EncodeToString(key(1)) + "\nzz"))
	f.Add([]byte("s3cret"))
	f.Add([]byte(strings.Repeat("\n", 100) + "q"))
	f.Fuzz(func(t *testing.T, content []byte) {
		keys, err := ParseKeys(content)
		if (err == nil) == (len(keys) == 0) {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		if err == nil {
			return
		}
		for word := range strings.FieldsSeq(string(content)) {
			if len(word) > 6 && strings.Contains(err.Error(), word) {
				t.Errorf("the error %q shows what is in the file", err)
			}
		}
	})
}
