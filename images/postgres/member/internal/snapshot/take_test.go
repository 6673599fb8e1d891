// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/kube"
)

// A server of the API with pods, snapshots and one ConfigMap. Made is what its storage makes of a new snapshot.
type server struct {
	mu        sync.Mutex
	pods      []corev1.Pod
	snapshots map[string]map[string]any
	record    map[string]any
	made      func(*server, map[string]any)
	refuse    int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	name := path.Base(r.URL.Path)
	switch {
	case strings.HasSuffix(r.URL.Path, "/pods"):
		s.answer(w, corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: s.pods})
	case strings.Contains(r.URL.Path, "/configmaps/"):
		maps.Copy(s.record, body["data"].(map[string]any))
		s.answer(w, corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}})
	case r.Method == http.MethodPost && s.refuse != 0:
		w.WriteHeader(s.refuse)
		s.answer(w, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: int32(s.refuse), Status: "Failure", Message: "exceeded quota"})
	case r.Method == http.MethodPost:
		s.snapshots[body["metadata"].(map[string]any)["name"].(string)] = body
		s.made(s, body)
		s.answer(w, body)
	case name == "volumesnapshots":
		var all []any
		for _, o := range s.snapshots {
			all = append(all, o)
		}
		s.answer(w, map[string]any{"items": all})
	case r.Method == http.MethodDelete:
		delete(s.snapshots, name)
		s.answer(w, map[string]any{})
	case s.snapshots[name] == nil:
		w.WriteHeader(http.StatusNotFound)
		s.answer(w, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 404, Reason: metav1.StatusReasonNotFound})
	case r.Method == http.MethodPatch:
		s.snapshots[name]["metadata"].(map[string]any)["annotations"] = body["metadata"].(map[string]any)["annotations"]
		fallthrough
	default:
		s.answer(w, s.snapshots[name])
	}
}

func (*server) answer(w io.Writer, v any) { _, _ = io.WriteString(w, text(v)) }

// pod of a member since a time, with claims of some volumes.
func pod(letter, role string, isReady bool, since time.Time, volumes ...string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "orders-db-" + letter + "-0", UID: "1",
		Labels: map[string]string{members.LabelMember: "orders-db-" + letter, members.LabelRole: role},
	}}
	status := corev1.ConditionFalse
	if isReady {
		status = corev1.ConditionTrue
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Time{Time: since}}}
	for _, v := range volumes {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: v, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v + "-orders-db-" + letter + "-0"},
		}})
	}
	return p
}

// earlier snapshot.
func earlier(name string, isReady, cut bool) map[string]any {
	shows := members.Snapshot{Database: "orders-db"}
	if cut {
		shows.Cut = "2026-11-20T00:00:00Z"
	}
	return map[string]any{
		"metadata": map[string]any{"name": name, "annotations": map[string]any{members.AnnotationSnapshot: text(shows)}},
		"status":   map[string]any{"readyToUse": isReady},
	}
}

// succeeds at once, with a clock that is ahead by a while.
func succeeds(ahead time.Duration) func(*server, map[string]any) {
	return func(_ *server, o map[string]any) {
		o["status"] = map[string]any{"creationTime": time.Now().Add(ahead).UTC().Format(time.RFC3339), "readyToUse": true, "restoreSize": "50Gi"}
	}
}

// before is what an earlier run wrote.
const before = `{"last":{"name":"before"},"kept":3}`

var began = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// usual members: a leader and two standbys.
func usual() []corev1.Pod {
	return []corev1.Pod{
		pod("c", members.RoleReplica, true, began, "data"), pod("a", members.RoleLeader, true, began, "data"), pod("b", members.RoleReplica, true, began, "data"),
	}
}

func TestTake(t *testing.T) {
	restarted := func(s *server, o map[string]any) {
		succeeds(0)(s, o)
		s.pods[2] = pod("b", members.RoleReplica, true, began.Add(time.Hour), "data")
	}
	for name, tc := range map[string]struct {
		reason string
		pods   []corev1.Pod
		had    []map[string]any
		made   func(*server, map[string]any)
		refuse int
		// member whose volume is taken, the words of a failure, and what is left beside the new one.
		member, fails string
		left          []string
	}{
		"Standby": {reason: "The leader has enough to do.", pods: usual(), member: "b"},
		"Leader":  {reason: "One member is the leader.", pods: usual()[1:2], member: "a"},
		"Unready": {reason: "A standby that is not ready may be copied again.", pods: []corev1.Pod{usual()[1], pod("b", members.RoleReplica, false, began, "data")}, member: "a"},
		"None":    {reason: "Nothing is there to be shown.", pods: []corev1.Pod{pod("a", members.RoleLeader, false, began, "data")}, fails: "no member is ready"},
		"TwoVolumes": {
			reason: "Its log is of another moment.", pods: []corev1.Pod{pod("a", members.RoleLeader, true, began, "data", "wal")}, fails: "on another volume",
		},
		"Refused": {reason: "The API server says why.", pods: usual(), refuse: 403, fails: "exceeded quota"},
		"Driver": {
			reason: "The driver says why.", pods: usual(), fails: "no space left",
			made: func(_ *server, o map[string]any) {
				o["status"] = map[string]any{"error": map[string]any{"message": "rpc error: no space left"}}
			},
		},
		"Silent": {reason: "There is no driver.", pods: usual(), made: func(*server, map[string]any) {}, fails: "snapshot controller"},
		"Restarted": {
			reason: "A member that was not ready in between may have been copied again.", pods: usual(), made: restarted, fails: "not ready all the time",
		},
		"Expires": {
			reason: "Two are kept: the new one and the last. What was not completed goes.", pods: usual(), member: "b",
			had:  []map[string]any{earlier("orders-db-2", true, true), earlier("orders-db-1", true, true), earlier("orders-db-3", true, false), earlier("orders-db-0", false, true)},
			left: []string{"orders-db-2"},
		},
		"FailureKeeps": {
			reason: "A run that fails removes nothing but its own.", pods: usual(), made: func(*server, map[string]any) {}, fails: "snapshot controller",
			had:  []map[string]any{earlier("orders-db-2", true, true), earlier("orders-db-1", true, true), earlier("orders-db-0", true, true)},
			left: []string{"orders-db-0", "orders-db-1", "orders-db-2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{pods: tc.pods, snapshots: map[string]map[string]any{}, made: tc.made, refuse: tc.refuse, record: map[string]any{members.KeyRecord: before, members.KeyFailure: "{}"}}
			if s.made == nil {
				s.made = succeeds(0)
			}
			for _, o := range tc.had {
				s.snapshots[o["metadata"].(map[string]any)["name"].(string)] = o
			}
			http := httptest.NewServer(s)
			defer http.Close()
			k, err := kube.New(&rest.Config{Host: http.URL})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if tc.fails == "" {
				ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			}
			defer cancel()
			taken, err := (&Taker{
				REST: k.REST, Namespace: "shop", Name: "orders-db", Base: "orders-db", Identity: "3f2a", Version: "17", Stanza: "orders-db-3f2a-17",
				Class: "fast", Keep: 2, Poll: 5 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
			}).Run(ctx)
			var left []string
			for name := range s.snapshots {
				if name != taken.Name {
					left = append(left, name)
				}
			}
			slices.Sort(left)
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("\n%s\nsnapshots beside the new one: -want, +got:\n%s", tc.reason, diff)
			}
			if tc.fails != "" {
				if said, _ := s.record[members.KeyFailure].(string); err == nil || !strings.Contains(err.Error(), tc.fails) || !strings.Contains(said, tc.fails) {
					t.Errorf("\n%s\nwant %q in the error %v and the record %q", tc.reason, tc.fails, err, said)
				}
				if s.record[members.KeyRecord] != before {
					t.Errorf("\n%s\nthe last snapshot is still the last, and the record is %+v", tc.reason, s.record)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			o := s.snapshots[taken.Name]
			want := map[string]any{"source": map[string]any{"persistentVolumeClaimName": "data-orders-db-" + tc.member + "-0"}, "volumeSnapshotClassName": "fast"}
			if diff := cmp.Diff(want, o["spec"]); diff != "" {
				t.Errorf("\n%s\nthe snapshot: -want, +got:\n%s", tc.reason, diff)
			}
			var shows members.Snapshot
			if err := json.Unmarshal([]byte(o["metadata"].(map[string]any)["annotations"].(map[string]any)[members.AnnotationSnapshot].(string)), &shows); err != nil {
				t.Fatal(err)
			}
			wantShows := members.Snapshot{Database: "orders-db", Identity: "3f2a", Stanza: "orders-db-3f2a-17", Version: "17", Member: "orders-db-" + tc.member, Cut: taken.Cut}
			if diff := cmp.Diff(wantShows, shows); diff != "" {
				t.Errorf("\n%s\nwhat it shows: -want, +got:\n%s", tc.reason, diff)
			}
			wantRecord := map[string]any{members.KeyRecord: text(members.SnapshotRecord{Last: taken, Kept: 1 + len(tc.left)}), members.KeyFailure: nil}
			if diff := cmp.Diff(wantRecord, s.record); diff != "" {
				t.Errorf("\n%s\nthe record: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCut is never before the snapshot: the clock of the storage may be ahead, and times are written in whole seconds.
func TestCut(t *testing.T) {
	s := &server{pods: usual(), snapshots: map[string]map[string]any{}, made: succeeds(time.Hour), record: map[string]any{}}
	http := httptest.NewServer(s)
	defer http.Close()
	k, err := kube.New(&rest.Config{Host: http.URL})
	if err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	taken, err := (&Taker{REST: k.REST, Namespace: "shop", Name: "orders-db", Keep: 1, Poll: time.Millisecond, Log: slog.New(slog.DiscardHandler)}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if cut, err := time.Parse(time.RFC3339, taken.Cut); err != nil || cut.Before(since.Add(time.Hour-time.Second)) {
		t.Errorf("it was cut by %s (%v), and the storage says an hour after %s", taken.Cut, err, since)
	}
}
