// SPDX-License-Identifier: Apache-2.0

// Package pages has the templates of the console, and the few files that browsers need beside them. Templates escape all that they show.
package pages

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/capstan-dev/capstan/internal/conditions"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed static/pico.min.css static/console.css static/console.js static/pico.LICENSE
var static embed.FS

// sums of the static files, which are parts of their addresses: a browser keeps a file for ever, and asks for another one after an update.
var sums = func() map[string]string {
	all := map[string]string{}
	entries, err := fs.ReadDir(static, "static")
	if err != nil {
		panic(err) // They are part of the program.
	}
	for _, e := range entries {
		data, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(data)
		all[e.Name()] = hex.EncodeToString(sum[:6])
	}

	return all
}()

var all = template.Must(template.New("").Funcs(template.FuncMap{
	"static": func(name string) string { return "/static/" + sums[name] + "/" + name },
	// Texts of others cannot turn the direction of what follows.
	"visible": func(v any) string { return conditions.VisibleLines(fmt.Sprint(v)) },
}).ParseFS(templates, "templates/*.html"))

// Render a template of a name.
func Render(name string, data any) ([]byte, error) {
	var out bytes.Buffer
	if err := all.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("cannot make the page %s: %w", name, err)
	}

	return out.Bytes(), nil
}

// Static serves the files of addresses like /static/SUM/NAME.
func Static(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	if sum, ok := sums[name]; !ok || !strings.HasSuffix(path.Dir(r.URL.Path), "/"+sum) {
		http.NotFound(w, r)

		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeFileFS(w, r, static, "static/"+name)
}
