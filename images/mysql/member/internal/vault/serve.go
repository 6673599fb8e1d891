// SPDX-License-Identifier: Apache-2.0

// Package vault serves a volume of backups: objects as they are in a bucket, and among them the repositories of restic by its own protocol.
// What is on the volume is what would be in the bucket, under the same names.
package vault

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	host "github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/member/volume"
)

// Paths of a host beside the path of the usage of its volume.
const (
	// PathList lists the objects whose keys begin with the QueryPrefix; with QueryShallow only folders and objects right below it.
	PathList     = "/list"
	QueryPrefix  = "prefix"
	QueryShallow = "shallow"
	// PathObjects is before the key of an object, and PathCopies before the key of a repository of restic.
	PathObjects = "/objects/"
	PathCopies  = "/copies/"
)

// An Entry of a list of objects: a folder ends with a slash, and has nothing but its key.
type Entry struct {
	Key     string    `json:"key"`
	Tag     string    `json:"tag,omitempty"`
	Written time.Time `json:"written,omitzero"`
	Size    int64     `json:"size,omitempty"`
}

// A Host of a volume.
type Host struct {
	// Address to listen at.
	Address string
	// Config has the certificate to show and the authority of its clients. It is read again for each connection.
	Config func() (*tls.Config, error)
	// Folder of objects, and Volume where the volume is mounted.
	Folder, Volume string
}

// Serve until the context ends.
func (h Host) Serve(ctx context.Context) error {
	handler, done, err := h.handler()
	if err != nil {
		return err
	}
	defer done()
	l, err := certificate.Listen(h.Address, h.Config)
	if err != nil {
		return err
	}
	return host.Serve(ctx, l, handler)
}

// handler of requests, and what ends its use.
func (h Host) handler() (http.Handler, func(), error) {
	t, err := grow(h.Folder, func() (int64, error) {
		u, err := volume.Measure(h.Volume)
		return u.Free, err
	})
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET " + host.PathUsage:              host.Measured(h.Volume),
		"GET " + PathList:                    t.answerList,
		"GET " + PathObjects + "{key...}":    t.answerGet,
		"PUT " + PathObjects + "{key...}":    t.answerPut,
		"DELETE " + PathObjects + "{key...}": t.answerRemove,
		PathCopies + "{key...}":              t.answerCopies,
	} {
		mux.HandleFunc(pattern, host.Only(mysqlmember.RepositoryCommonName, handle))
	}
	return mux, t.close, nil
}

// fail a request.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, errNone):
		status = http.StatusNotFound
	case errors.Is(err, errName):
		status = http.StatusBadRequest
	case errors.Is(err, errChanged):
		status = http.StatusPreconditionFailed
	case errors.Is(err, errFull):
		status = http.StatusInsufficientStorage
	}
	host.Refuse(w, status, err)
}

func (t *tree) answerList(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	all, err := t.list(q.Get(QueryPrefix), q.Get(QueryShallow) != "")
	if err != nil {
		fail(w, err)
		return
	}
	host.Write(w, all)
}

func (t *tree) answerGet(w http.ResponseWriter, r *http.Request) { t.send(w, r, r.PathValue("key")) }

// send an object, or the part of it that is requested.
func (t *tree) send(w http.ResponseWriter, r *http.Request, key string) {
	f, info, err := t.open(key)
	if err != nil {
		fail(w, err)
		return
	}
	defer func() { _ = f.Close() }()
	w.Header().Set("Etag", tagOf(info))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", info.ModTime(), f)
}

func (t *tree) answerPut(w http.ResponseWriter, r *http.Request) {
	once, tag := r.Header.Get("If-None-Match") != "", r.Header.Get("If-Match")
	if err := t.take(r, r.PathValue("key"), func(has string) bool { return (!once || has == "") && (tag == "" || has == tag) }); err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// take an object from a request.
func (t *tree) take(r *http.Request, key string, allowed func(string) bool) error {
	if r.ContentLength < 0 {
		return fmt.Errorf("%w: a request has to say how long the object is", errName)
	}
	return t.put(key, io.LimitReader(r.Body, r.ContentLength), r.ContentLength, allowed)
}

func (t *tree) answerRemove(w http.ResponseWriter, r *http.Request) {
	if err := t.remove(r.PathValue("key")); err != nil && !errors.Is(err, errNone) {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
