// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
	"github.com/capstan-dev/capstan/images/companion/internal/transfer"
)

const (
	// mlflowBegin is how long MLflow may take to begin: it first copies an artifact from where it keeps it.
	mlflowBegin = 10 * time.Minute
	// maxListing is the largest list of files of one folder.
	maxListing = 32 << 20
)

// mlflow hands out the artifacts that it keeps.
type mlflow struct {
	getter

	// base is the URL of the artifacts' API.
	base *url.URL
}

// newMLflow returns the artifacts that an MLflow server hands out itself, by a URI as in mlflow-artifacts:/1/run/artifacts.
func newMLflow(u *url.URL, o Options) (Source, error) {
	endpoint := o.Endpoint
	if endpoint == "" {
		endpoint = o.Credentials.Endpoint
	}
	base, err := url.Parse(strings.TrimRight(endpoint, "/"))
	if err != nil || base.Host == "" || !web(base.Scheme) {
		return nil, failure.New(failure.Invalid, fmt.Sprintf("endpoint %s is not the URL of an MLflow server", strconv.Quote(endpoint)),
			"add ?endpoint= to spec.model.uri, or the key endpoint of the credentials")
	}
	if u.Host != "" && u.Host != base.Host {
		return nil, invalid(u.String(), fmt.Sprintf("its server is not the endpoint %q", endpoint))
	}
	root := strings.Trim(u.Path, "/")
	if err := model.ValidPath(root); err != nil {
		return nil, invalid(u.String(), "it names no artifact")
	}
	client, err := newClient(&o.Credentials, mlflowBegin)
	if err != nil {
		return nil, err
	}
	m := &mlflow{
		getter: getter{client: client, sign: o.Credentials.sign, explain: mlflowSays},
		base:   base.JoinPath("api/2.0/mlflow-artifacts/artifacts"),
	}
	return &files{o: o.Options, list: func(ctx context.Context) ([]transfer.File, error) { return m.all(ctx, root) }}, nil
}

// An artifact, file or folder, as MLflow lists it.
type artifact struct {
	Path  string `json:"path"`
	IsDir bool   `json:"is_dir"`
	// Size may be a number or a string, as protobuf writes large numbers.
	Size json.RawMessage `json:"file_size"`
}

func (a artifact) size() int64 {
	n, err := strconv.ParseInt(strings.Trim(string(a.Size), `"`), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// all files of a model: below a folder, or one file.
func (m *mlflow) all(ctx context.Context, root string) ([]transfer.File, error) {
	var found []transfer.File
	folders := []string{""}
	for len(folders) > 0 {
		dir := folders[0]
		folders = folders[1:]
		entries, err := m.ls(ctx, path.Join(root, dir))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name := path.Join(dir, path.Base(e.Path))
			if err := model.ValidPath(name); err != nil {
				return nil, invalid("mlflow-artifacts:/"+root, err.Error())
			}
			if e.IsDir {
				folders = append(folders, name)
			} else {
				found = append(found, m.file(path.Join(root, name), name, e.size()))
			}
		}
		if err := model.Countable(len(found) + len(folders)); err != nil {
			return nil, err
		}
	}
	if len(found) > 0 {
		return found, nil
	}

	// A list of a file is as empty as the list of nothing, and to get nothing is an error of the server; its folder knows.
	parent := path.Dir(root)
	if parent == "." {
		parent = ""
	}
	entries, err := m.ls(ctx, parent)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name := path.Base(e.Path); name == path.Base(root) && !e.IsDir {
			return []transfer.File{m.file(root, name, e.size())}, nil
		}
	}
	return nil, failure.New(failure.NotFound, "MLflow has no artifacts at "+strconv.Quote("mlflow-artifacts:/"+root),
		"log the model again, or choose another version")
}

// ls lists a folder.
func (m *mlflow) ls(ctx context.Context, dir string) ([]artifact, error) {
	u := *m.base
	if dir != "" {
		u.RawQuery = url.Values{"path": {dir}}.Encode()
	}
	resp, err := m.get(ctx, u.String(), strconv.Quote("mlflow-artifacts:/"+dir), 0, -1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Files *[]artifact `json:"files"`
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxListing))
	if err != nil {
		return nil, transfer.Temporary(err)
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, failure.New(failure.Invalid, strconv.Quote(m.base.Host)+" answers something that is no list of artifacts",
			"correct the endpoint: it is the URL of the MLflow server, and that must serve artifacts")
	}
	if answer.Files == nil {
		return nil, nil
	}
	return *answer.Files, nil
}

func (m *mlflow) file(from, name string, size int64) transfer.File {
	address := m.base.JoinPath(strings.Split(escaped(from), "/")...).String()
	return transfer.File{Path: name, Size: size, Open: m.opener(address, strconv.Quote("mlflow-artifacts:/"+from), size)}
}

// escaped path, whose steps may hold what means something else in a URL.
func escaped(name string) string {
	steps := strings.Split(name, "/")
	for i := range steps {
		steps[i] = url.PathEscape(steps[i])
	}
	return strings.Join(steps, "/")
}

// mlflowSays is the message of an error without its code, or the line of plain text that some errors are.
func mlflowSays(body []byte) string {
	var answer struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &answer) == nil {
		return answer.Message
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	switch {
	case strings.HasPrefix(line, "<"):
		return ""
	case strings.Contains(line, "Invalid Host header"):
		return "MLflow does not want to be called by this host name, see its option --allowed-hosts"
	}
	return strings.ToValidUTF8(line[:min(len(line), 300)], "")
}
