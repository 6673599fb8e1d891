// SPDX-License-Identifier: Apache-2.0

//go:build integration

package screen

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/test/browser"
)

// A terminal of a page: text in columns of one width, in the colours of the screen.
const terminal = `<!doctype html><title>terminal</title><style>
body {margin: 0; background: #1e1e1e}
pre {margin: 0; padding: 24px; color: #d4d4d4; font: 13px/1.4 "DejaVu Sans Mono", monospace}
.bold {font-weight: bold; color: #fff} .faint {color: #8a8a8a} .red {color: #f48771} .green {color: #89d185} .yellow {color: #e5c07b}
</style><pre id="terminal">%s</pre>`

// TestPicture takes the pictures of the documentation, where CAPSTAN_SCREENSHOTS names a folder, of what the screen draws. A picture
// shows all the text, and nothing of the terminal's own codes.
func TestPicture(t *testing.T) {
	views := map[string]View{
		"plugin-algorithm": viewOf(t, stepping, both),
		"plugin-database":  Database{Now: now, Object: databaseOf(t)},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := views[strings.TrimPrefix(r.URL.Path, "/")]
		if v == nil {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, terminal, page(v.Draw(140)))
	}))
	t.Cleanup(server.Close)
	b := browser.Start(t, server.URL)
	for name, v := range views {
		b.Open("/" + name)
		for _, line := range Plain(v.Draw(140)) {
			b.Sees(strings.Fields(line)...)
		}
		b.SeesNot("\x1b", "[0m")
		b.ScreenshotOf("terminal", name)
	}
}

// page has lines in their colours, each of which lasts until the terminal resets them.
func page(lines []string) string {
	classes := map[string]string{bold: "bold", faint: "faint", red: "red", green: "green", yellow: "yellow"}
	text := html.EscapeString(strings.Join(lines, "\n"))
	for code, class := range classes {
		text = strings.ReplaceAll(text, code, `<span class="`+class+`">`)
	}
	parts := strings.Split(text, plain)
	for i, part := range parts {
		parts[i] = part + strings.Repeat("</span>", strings.Count(part, "<span "))
	}

	return strings.Join(parts, "")
}
