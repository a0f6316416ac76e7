package serve

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/httpcache"
)

const (
	maxWarmBytes = 16 << 20
	maxWarmURLs  = 100_000
)

// warmRequest is one request of a warm-up.
type warmRequest struct {
	url    *url.URL
	header httpcache.Fields
}

// checkWarmFile reports the faults of --warm-file, and that loading it is yet to
// come.
func checkWarmFile(path string) error {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--warm-file: %w", err)
	}
	_, err = parseWarmFile(path, data)
	return errors.Join(errors.New("--warm-file is refused: warm-up comes with a later release; leave it out"), err)
}

// parseWarmFile reads URLs, one a line. A line that begins with a space or a tab
// is a header of the URL above it; empty lines and those that begin with # are
// passed over. Every fault is reported with its line.
func parseWarmFile(path string, data []byte) ([]warmRequest, error) {
	if len(data) > maxWarmBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxWarmBytes)
	}
	var requests []warmRequest
	var faults []error
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxWarmBytes+1)
	for n := 1; lines.Scan(); n++ {
		err := parseWarmLine(&requests, lines.Text())
		if err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: %w", path, n, err))
		}
	}
	return requests, errors.Join(faults...)
}

func parseWarmLine(requests *[]warmRequest, line string) error {
	text := strings.TrimSpace(line)
	if text == "" || strings.HasPrefix(text, "#") {
		return nil
	}
	if line[0] == ' ' || line[0] == '\t' {
		if len(*requests) == 0 {
			return errors.New("a header without a URL above it")
		}
		field, err := admin.ParseHeader(text)
		if err != nil {
			return err
		}
		last := &(*requests)[len(*requests)-1]
		last.header = append(last.header, field)
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%q: want an absolute URL, http or https", text)
	}
	if len(*requests) == maxWarmURLs {
		return fmt.Errorf("more than %d URLs", maxWarmURLs)
	}
	*requests = append(*requests, warmRequest{url: u})
	return nil
}
