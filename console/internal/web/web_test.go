// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/console/internal/kube"
	"github.com/capstan-dev/capstan/console/internal/session"
)

// A fakeAPI answers like an API server: it knows users by their tokens, and objects by their paths.
type fakeAPI struct {
	mu sync.Mutex
	// users by token, and what each may see: beginnings of paths.
	users map[string]string
	may   map[string][]string
	// objects by path.
	objects map[string]any
	// answers that come in place of an object, by method and path.
	answers map[string]metav1.Status
	// anyone is the user of all other tokens, if any.
	anyone string
	// changing is true of objects that change all the time, for those who watch them.
	changing bool
	watches  atomic.Int32
	// asked are the requests, with the user of each.
	asked []string
}

func status(code int32, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}
}

// watched objects change every 50 ms. A watch lasts a second.
func (f *fakeAPI) watched(w http.ResponseWriter, r *http.Request) {
	f.watches.Add(1)
	w.Header().Set("Content-Type", "application/json")
	end := time.After(time.Second)
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		select {
		case <-end:
			return
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": database1("orders-db")}) //nolint:errchkjson // A test answers.
		_ = http.NewResponseController(w).Flush()
	}
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.changing && r.URL.Query().Get("watch") == "true" {
		f.watched(w, r)

		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	refuse := func(s metav1.Status) {
		w.WriteHeader(int(s.Code))
		_ = json.NewEncoder(w).Encode(s) //nolint:errchkjson // A test answers.
	}
	user, known := f.users[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !known && f.anyone != "" {
		user, known = f.anyone, true
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate") {
			refuse(status(400, metav1.StatusReasonBadRequest, "impersonation"))

			return
		}
	}
	body, _ := io.ReadAll(r.Body)
	f.asked = append(f.asked, strings.TrimSpace(user+" "+r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	switch {
	case !known:
		refuse(status(401, metav1.StatusReasonUnauthorized, "Unauthorized"))
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		_ = json.NewEncoder(w).Encode(map[string]any{ //nolint:errchkjson // A test answers.
			"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "status": map[string]any{"userInfo": map[string]any{"username": user}},
		})
	case !slices.ContainsFunc(f.may[user], func(p string) bool { return strings.Contains(r.URL.Path, p) }):
		refuse(status(403, metav1.StatusReasonForbidden, `forbidden: User "x" cannot get resource "y"`))
	default:
		if s, ok := f.answers[r.Method+" "+r.URL.Path]; ok {
			refuse(s)

			return
		}
		if o, ok := f.objects[r.URL.Path]; ok {
			if r.Method == http.MethodPatch {
				o = patched(o, body)
			}
			_ = json.NewEncoder(w).Encode(o) //nolint:errchkjson // A test answers.

			return
		}
		if r.Method == http.MethodPost || r.Method == http.MethodPatch {
			_, _ = w.Write(body)

			return
		}
		if !oneObject.MatchString(r.URL.Path) {
			_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}}) //nolint:errchkjson // A test answers.

			return
		}
		refuse(status(404, metav1.StatusReasonNotFound, "not found"))
	}
}

// oneObject has a path that ends with its name.
var oneObject = regexp.MustCompile(`/namespaces/[^/]+/[^/]+/[^/]+$|/environmentconfigs/[^/]+$`)

// patched object, by a JSON merge patch.
func patched(o any, patch []byte) any {
	data, _ := json.Marshal(o) //nolint:errchkjson // A test answers.
	var object, change map[string]any
	_, _ = json.Unmarshal(data, &object), json.Unmarshal(patch, &change)
	var merge func(into, from map[string]any)
	merge = func(into, from map[string]any) {
		for name, v := range from {
			a, isMap := into[name].(map[string]any)
			b, both := v.(map[string]any)
			switch {
			case isMap && both:
				merge(a, b)
			case v == nil:
				delete(into, name)
			default:
				into[name] = v
			}
		}
	}
	merge(object, change)

	return object
}

// A rig is a console with such an API server, and a browser without scripts.
type rig struct {
	t       testing.TB
	api     *fakeAPI
	address string
	client  *http.Client
	options Options
}

func newRig(tb testing.TB, change ...func(*Options)) *rig {
	tb.Helper()
	api := &fakeAPI{
		users: map[string]string{"alices": "alice", "bobs": "bob"},
		may:   map[string][]string{"alice": {"/namespaces/shop/"}, "bob": {"/namespaces/bank/"}},
		// More than one test adds to these.
		objects: map[string]any{}, answers: map[string]metav1.Status{},
	}
	server := httptest.NewServer(api)
	tb.Cleanup(server.Close)
	sessions, err := session.New([]byte(strings.Repeat("k", 32)), false)
	if err != nil {
		tb.Fatal(err)
	}
	pages := httptest.NewUnstartedServer(nil)
	address := "http://" + pages.Listener.Addr().String()
	u, _ := url.Parse(address)
	o := Options{
		URL: u, Kube: kube.NewServer(&rest.Config{Host: server.URL, BearerToken: "the console's own", Username: "root", Password: "x"}), Sessions: sessions, Paste: true, Streams: 2,
		Log: slog.New(slog.NewTextHandler(tb.Output(), nil)),
	}
	for _, c := range change {
		c(&o)
	}
	pages.Config.Handler = New(tb.Context(), o)
	pages.Start()
	tb.Cleanup(pages.Close)
	r := &rig{t: tb, api: api, address: address, options: o}
	r.fresh()

	return r
}

// fresh browser, without cookies.
func (r *rig) fresh() {
	jar, _ := cookiejar.New(nil)
	r.client = &http.Client{Jar: jar}
}

func (r *rig) read(rsp *http.Response, err error) (int, string) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = rsp.Body.Close() }()
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		r.t.Fatal(err)
	}

	return rsp.StatusCode, string(body)
}

func (r *rig) get(path string) (int, string) {
	r.t.Helper()

	return r.read(r.client.Get(r.address + path)) //nolint:bodyclose // read closes it.
}

func (r *rig) post(path string, values url.Values) (int, string) {
	r.t.Helper()

	return r.read(r.client.PostForm(r.address+path, values)) //nolint:bodyclose // read closes it.
}

var csrfInput = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// csrf token of a page.
func csrf(tb testing.TB, page string) string {
	tb.Helper()
	m := csrfInput.FindStringSubmatch(page)
	if m == nil {
		tb.Fatalf("the page has no form:\n%s", page)
	}

	return m[1]
}

func (r *rig) logIn(token string) {
	r.t.Helper()
	r.fresh()
	_, page := r.get("/login")
	if code, page := r.post("/login", url.Values{"csrf": {csrf(r.t, page)}, "token": {token}}); code != http.StatusOK {
		r.t.Fatalf("cannot log in: %d\n%s", code, page)
	}
}

func sees(t *testing.T, page string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(html.UnescapeString(page), w) {
			t.Errorf("want %q in\n%s", w, page)
		}
	}
}

// TestRightsAreOfTheUser: the API server is asked with the token of the user, whatever the console itself has, and nothing of one user is kept
// for another.
func TestRightsAreOfTheUser(t *testing.T) {
	r := newRig(t)
	r.api.objects["/apis/capstan.dev/v1alpha1/namespaces/shop/databases/orders-db"] = database1("orders-db")
	r.logIn("alices")
	if code, page := r.get("/n/shop/databases/o/orders-db"); code != http.StatusOK {
		t.Errorf("alice: %d\n%s", code, page)
	}
	r.logIn("bobs")
	for _, path := range []string{"/n/shop/databases/o/orders-db", "/n/shop/databases/o/orders-db/edit", "/n/shop/databases/o/orders-db/act/switchover"} {
		code, page := r.get(path)
		if code != http.StatusForbidden || strings.Contains(page, "50Gi") {
			t.Errorf("bob reads %s: %d\n%s", path, code, page)
		}
		sees(t, page, "You lack a right", "You may not get databases.capstan.dev in namespace shop", "capstan-view")
	}
	code, page := r.get("/n/shop")
	if code != http.StatusOK {
		t.Errorf("a page with what bob may see: %d", code)
	}
	sees(t, page, "You may not list databases.capstan.dev in namespace shop")
	for _, asked := range r.api.asked {
		if !strings.HasPrefix(asked, "alice ") && !strings.HasPrefix(asked, "bob ") {
			t.Errorf("a request without a user: %s", asked)
		}
	}
}

// TestForged: no page of others can send a form, reach the console by another name, or show it in a frame.
func TestForged(t *testing.T) {
	r := newRig(t)
	r.api.objects["/apis/capstan.dev/v1alpha1/namespaces/shop/databases/orders-db"] = database1("orders-db")
	r.logIn("alices")
	_, page := r.get("/n/shop/databases/new")
	mine := csrf(t, page)
	other := newRig(t)
	other.logIn("alices")
	_, page = other.get("/n/shop/databases/new")
	r.api.asked = nil
	for _, path := range []string{"/n/shop/databases/new", "/n/shop/databases/o/orders-db/edit", "/n/shop/databases/o/orders-db/act/hibernate", "/logout"} {
		for reason, values := range map[string]url.Values{
			"without a token":          {},
			"with an empty token":      {"csrf": {""}},
			"with that of an attacker": {"csrf": {csrf(t, page)}},
		} {
			if code, page := r.post(path, values); code != http.StatusForbidden {
				t.Errorf("%s %s: %d\n%s", path, reason, code, page)
			}
		}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.address+path, strings.NewReader(url.Values{"csrf": {mine}}.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", "https://attacker.example")
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		if code, _ := r.read(r.client.Do(req)); code != http.StatusForbidden { //nolint:bodyclose // read closes it.
			t.Errorf("%s from another site: %d", path, code)
		}
	}
	for _, asked := range r.api.asked {
		if !strings.Contains(asked, " GET ") {
			t.Errorf("a forged form changed something: %s", asked)
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.address+"/n/shop", nil)
	req.Host = "attacker.example"
	if code, _ := r.read(r.client.Do(req)); code != http.StatusMisdirectedRequest { //nolint:bodyclose // read closes it.
		t.Errorf("by another name: %d", code)
	}

	rsp, err := r.client.Get(r.address + "/n/shop")
	if err != nil {
		t.Fatal(err)
	}
	_ = rsp.Body.Close()
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
	} {
		if got := rsp.Header.Get(name); got != want {
			t.Errorf("%s: want %q, got %q", name, want, got)
		}
	}
}

// TestAddresses that are no names lead nowhere, and nobody is asked.
func TestAddresses(t *testing.T) {
	r := newRig(t)
	r.logIn("alices")
	r.api.asked = nil
	for _, path := range []string{
		"/n/" + url.PathEscape("<script>"), "/n/" + url.PathEscape("../secrets"), "/n/shop/secrets/o/orders", "/n/shop/databases/o/" + url.PathEscape("a/../../b"),
		"/n/shop/pods/new", "/n/shop/buckets/new", "/?namespace=" + url.QueryEscape("//attacker.example"), "/nothing", "/static/x/../../main.go", "/n/shop/databases/o/orders-db/act/drop",
	} {
		code, page := r.get(path)
		if code != http.StatusNotFound || strings.Contains(page, "<script>") {
			t.Errorf("%s: %d\n%s", path, code, page)
		}
	}
	for _, asked := range r.api.asked {
		if !strings.Contains(asked, "/databases/orders-db") {
			t.Errorf("asked: %s", asked)
		}
	}
	for next, want := range map[string]string{
		"/n/shop": "/n/shop", "//attacker.example": "/", "https://attacker.example": "/", `/\attacker.example`: "/", "/logout": "/", "": "/", "/\t/attacker.example": "/",
	} {
		if got := local(next); got != want {
			t.Errorf("after a login to %q: want %q, got %q", next, want, got)
		}
	}
}

// TestLoginEnds: what was typed comes back, and a stream is told.
func TestLoginEnds(t *testing.T) {
	r := newRig(t)
	r.logIn("alices")
	_, page := r.get("/n/shop/databases/new")
	token := csrf(t, page)
	r.api.mu.Lock()
	delete(r.api.users, "alices")
	r.api.mu.Unlock()
	code, page := r.post("/n/shop/databases/new", url.Values{
		"csrf": {token}, "yaml": {"spec: {mine: true}"}, "field.storage": {"77Gi"},
	})
	if code != http.StatusUnauthorized && code != http.StatusUnprocessableEntity {
		t.Errorf("the token is not valid any more: %d", code)
	}
	sees(t, page, "spec: {mine: true}", "77Gi")
	r.fresh()
	code, page = r.post("/n/shop/databases/new", url.Values{"csrf": {token}, "yaml": {"spec: {mine: true}"}, "field.storage": {"77Gi"}})
	if code != http.StatusUnauthorized {
		t.Errorf("nobody is logged in: %d", code)
	}
	sees(t, page, "Your login has ended", "spec: {mine: true}", "# storage: 77Gi", `value="/n/shop/databases/new"`)
	if _, stream := r.get("/n/shop/live"); !strings.HasPrefix(stream, "event: ended\n") {
		t.Errorf("a stream without a login: %q", stream)
	}
}

func database1(name string) *v1alpha1.Database {
	d := &v1alpha1.Database{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Database"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", ResourceVersion: "7", Generation: 1},
		Spec:       v1alpha1.DatabaseSpec{Engine: v1alpha1.EnginePostgres, Version: "17", Replicas: 3},
	}
	d.Spec.Storage.Set(50 << 30)

	return d
}

// hostile is HTML in every context that a template has.
const hostile = `"'><script>alert(1)</script><img src=x onerror=alert(2)>` + "`</textarea></pre></svg>javascript:alert(3)"

// poison all texts of a value, in lists and maps of one item each.
func poison(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(hostile)
		}
	case reflect.Pointer:
		if v.CanSet() && depth < 12 {
			v.Set(reflect.New(v.Type().Elem()))
			poison(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.CanSet() && depth < 12 && v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			poison(v.Index(0), depth+1)
		}
	case reflect.Map:
		if v.CanSet() && depth < 12 && v.Type().Key().Kind() == reflect.String {
			item := reflect.New(v.Type().Elem()).Elem()
			poison(item, depth+1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf(hostile).Convert(v.Type().Key()), item)
		}
	case reflect.Struct:
		// Times and quantities have forms of their own, which the API server keeps.
		if name := v.Type().String(); name == "v1.Time" || name == "v1.MicroTime" || name == "resource.Quantity" || name == "intstr.IntOrString" || strings.HasPrefix(name, "runtime.") {
			return
		}
		for _, f := range v.Fields() {
			poison(f, depth+1)
		}
	default:
	}
}

// TestHostile: every text of every object that the console reads is hostile, in lists and pages, and none of it becomes an element or an
// attribute.
func TestHostile(t *testing.T) {
	r := newRig(t)
	event := &corev1.Event{}
	poison(reflect.ValueOf(event).Elem(), 0)
	event.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}
	r.api.objects["/api/v1/namespaces/shop/events"] = map[string]any{"apiVersion": "v1", "kind": "EventList", "items": []any{event}}
	objects := map[string]any{
		"algorithms": &v1alpha1.Algorithm{}, "databases": &v1alpha1.Database{}, "trainings": &v1alpha1.Training{}, "buckets": &storagev1alpha1.Bucket{},
		"registeredmodels": &registryv1alpha1.RegisteredModel{}, "modelversions": &registryv1alpha1.ModelVersion{},
	}
	if want := len(kube.Kinds); len(objects) != want {
		t.Errorf("want all %d kinds, got %d", want, len(objects))
	}
	r.logIn("alices")
	pages := []string{"/n/shop"}
	for _, k := range kube.Kinds {
		o := objects[k.Resource]
		poison(reflect.ValueOf(o).Elem(), 0)
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(data, &object); err != nil {
			t.Fatal(err)
		}
		object["apiVersion"], object["kind"] = k.GroupVersion().String(), k.Name
		metadata, _ := object["metadata"].(map[string]any)
		maps.DeleteFunc(metadata, func(name string, _ any) bool {
			return name == "managedFields" || name == "ownerReferences" || strings.HasSuffix(name, "Timestamp")
		})
		metadata["resourceVersion"] = "7"
		if spec, ok := object["spec"].(map[string]any); ok {
			spec["crossplane"] = map[string]any{"resourceRefs": []any{map[string]any{"apiVersion": "v1", "kind": hostile, "name": hostile}}}
		}
		base := "/apis/" + k.Group + "/" + k.Version + "/namespaces/shop/" + k.Resource
		r.api.objects[base] = map[string]any{"apiVersion": k.GroupVersion().String(), "kind": k.Name + "List", "items": []any{object}}
		r.api.objects[base+"/one"] = object
		page := "/n/shop/" + k.Resource + "/o/one"
		pages = append(pages, page)
		if k.Form != nil {
			pages = append(pages, page+"/edit")
		}
		for _, a := range acts[k.Name] {
			pages = append(pages, page+"/act/"+a.Name+"?to="+url.QueryEscape(hostile)+"&at="+url.QueryEscape(hostile)+"&weight="+url.QueryEscape(hostile)+"&member="+url.QueryEscape(hostile))
		}
	}
	for _, path := range pages {
		code, page := r.get(path)
		if code >= http.StatusInternalServerError {
			t.Errorf("%s: %d\n%s", path, code, page)
		}
		if !strings.Contains(page, "alert(1)") && !strings.Contains(path, "/act/") {
			t.Errorf("%s shows no text of the object", path)
		}
		harmless(t, path, page)
	}
	// What a person typed comes back as it was.
	_, page := r.get("/n/shop/databases/new")
	values := url.Values{"csrf": {csrf(t, page)}, "do": {"check"}, "name": {hostile}, "yaml": {hostile}, "base": {hostile}, "shown": {hostile}, "checked": {hostile}}
	for _, f := range []string{"engine", "version", "replicas", "storage", "backup.schedule"} {
		values.Set(fieldPrefix+f, hostile)
	}
	code, page := r.post("/n/shop/databases/new", values)
	if code != http.StatusUnprocessableEntity {
		t.Errorf("a hostile form: %d", code)
	}
	harmless(t, "a hostile form", page)
	values.Set("yaml", "apiVersion: capstan.dev/v1alpha1\nkind: Database\nmetadata: {name: x, namespace: shop}\nspec: {}\n")
	_, page = r.post("/n/shop/databases/new", values)
	harmless(t, "hostile fields", page)
	r.api.answers["POST /apis/capstan.dev/v1alpha1/namespaces/shop/databases"] = status(422, metav1.StatusReasonInvalid, hostile)
	for _, f := range []string{"replicas", "name"} {
		values.Del(fieldPrefix + f)
	}
	_, page = r.post("/n/shop/databases/new", values)
	harmless(t, "a hostile answer", page)
}

// elements that templates have.
var elements = []string{
	"html", "head", "meta", "title", "link", "script", "body", "a", "header", "nav", "ul", "ol", "li", "strong", "bdi", "form", "input", "button", "main", "h1", "h2", "p", "small",
	"div", "section", "table", "thead", "tbody", "tr", "th", "td", "span", "details", "summary", "pre", "code", "ins", "del", "dl", "dt", "dd", "label", "select", "option", "textarea",
	"br", "svg", "g", "rect", "text", "path", "figure", "figcaption",
}

// harmless reports whether a page has only elements and attributes of templates.
func harmless(t *testing.T, path, page string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if !slices.Contains(elements, n.Data) {
			t.Errorf("%s: element %s", path, n.Data)
		}
		for _, a := range n.Attr {
			switch value := strings.TrimSpace(strings.ToLower(a.Val)); {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc":
				t.Errorf("%s: attribute %s of %s", path, a.Key, n.Data)
			case (a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "data-live" || a.Key == "data-curves") && !strings.HasPrefix(value, "/") && value != "#main" && value != "data:,":
				t.Errorf("%s: %s=%q of %s", path, a.Key, a.Val, n.Data)
			case n.Data == "script" && a.Key == "src" && !strings.HasPrefix(a.Val, "/static/"):
				t.Errorf("%s: script %s", path, a.Val)
			}
		}
		if n.Data == "script" && n.FirstChild != nil {
			t.Errorf("%s: a script in the page: %s", path, n.FirstChild.Data)
		}
	}
}

// TestEdit: a patch has what was changed and the version that it is for, is tried first, and is applied only as it was checked.
func TestEdit(t *testing.T) {
	r := newRig(t)
	const object = "/apis/capstan.dev/v1alpha1/namespaces/shop/databases/orders-db"
	r.api.objects[object] = database1("orders-db")
	r.logIn("alices")
	_, page := r.get("/n/shop/databases/o/orders-db/edit")
	values := formOf(t, page)
	values.Set("field.replicas", "5")
	values.Set("do", "apply")
	r.api.asked = nil
	_, page = r.post("/n/shop/databases/o/orders-db/edit", values)
	sees(t, page, "The API server accepts it")
	values = formOf(t, page)
	values.Set("do", "apply")
	r.api.answers["GET /none"] = metav1.Status{}
	_, page = r.post("/n/shop/databases/o/orders-db/edit", values)
	sees(t, page, "The change is applied")
	var patches []string
	for _, asked := range r.api.asked {
		if strings.Contains(asked, " PATCH ") {
			patches = append(patches, asked)
		}
	}
	want := []string{
		"alice PATCH " + object + "?dryRun=All&fieldManager=capstan-console&fieldValidation=Strict " + `{"metadata":{"resourceVersion":"7"},"spec":{"replicas":5}}`,
		"alice PATCH " + object + "?fieldManager=capstan-console&fieldValidation=Strict " + `{"metadata":{"resourceVersion":"7"},"spec":{"replicas":5}}`,
	}
	if diff := cmp.Diff(want, patches); diff != "" {
		t.Errorf("patches: -want, +got:\n%s", diff)
	}

	// Another object cannot be slipped in.
	values = formOf(t, page2(r, "/n/shop/databases/o/orders-db/edit"))
	values.Set("yaml", strings.Replace(values.Get("yaml"), "name: orders-db", "name: other", 1))
	values.Set("do", "check")
	_, page = r.post("/n/shop/databases/o/orders-db/edit", values)
	sees(t, page, `metadata.name is "other"`)
}

func page2(r *rig, path string) string {
	_, page := r.get(path)

	return page
}

// formOf a page, as a browser would send it.
func formOf(t *testing.T, page string) url.Values {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	values := url.Values{}
	attr := func(n *html.Node, key string) string {
		for _, a := range n.Attr {
			if a.Key == key {
				return a.Val
			}
		}

		return ""
	}
	for n := range root.Descendants() {
		name := attr(n, "name")
		if name == "" || n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "input":
			values.Set(name, attr(n, "value"))
		case "textarea":
			if n.FirstChild != nil {
				values.Set(name, n.FirstChild.Data)
			}
		case "select":
			for o := range n.Descendants() {
				for _, a := range o.Attr {
					if a.Key == "selected" {
						values.Set(name, o.FirstChild.Data)
					}
				}
			}
		}
	}

	return values
}

// TestAct: it is shown first, confirmed as it was shown, and carried out for the version that was read.
func TestAct(t *testing.T) {
	r := newRig(t)
	const object = "/apis/capstan.dev/v1alpha1/namespaces/shop/databases/orders-db"
	d := database1("orders-db")
	d.Status.Phase, d.Status.Leader = v1alpha1.DatabaseRunning, "orders-db-a"
	r.api.objects[object] = d
	r.logIn("alices")
	_, page := r.get("/n/shop/databases/o/orders-db")
	sees(t, page, "act/hibernate")
	if strings.Contains(page, "act/wake") || strings.Contains(page, "act/restore") {
		t.Errorf("an act is offered that cannot be done now:\n%s", page)
	}
	_, page = r.get("/n/shop/databases/o/orders-db/act/hibernate")
	sees(t, page, "What will happen", "hibernated: true")
	values := formOf(t, page)
	r.api.asked = nil
	values.Set("words", "other")
	code, again := r.post("/n/shop/databases/o/orders-db/act/hibernate", values)
	if code != http.StatusConflict {
		t.Errorf("what was not shown is not done: %d", code)
	}
	sees(t, again, "It has changed meanwhile")
	_, page = r.post("/n/shop/databases/o/orders-db/act/hibernate", formOf(t, again))
	sees(t, page, "It is requested")
	var patches []string
	for _, asked := range r.api.asked {
		if strings.Contains(asked, " PATCH ") {
			patches = append(patches, asked)
		}
	}
	want := []string{"alice PATCH " + object + "?fieldManager=capstan-console&fieldValidation=Strict " + `{"metadata":{"resourceVersion":"7"},"spec":{"hibernated":true}}`}
	if diff := cmp.Diff(want, patches); diff != "" {
		t.Errorf("patches: -want, +got:\n%s", diff)
	}
	if code, page = r.get("/n/shop/databases/o/orders-db/act/restore"); code != http.StatusUnprocessableEntity {
		t.Errorf("a restore without backups: %d", code)
	}
	sees(t, page, "it has no backups")
}

// live page of a namespace, which stays open.
func (r *rig) live(namespace string) {
	r.t.Helper()
	rsp, err := r.client.Get(r.address + "/n/" + namespace + "/live")
	if err != nil {
		r.t.Fatal(err)
	}
	first := make([]byte, 12)
	if _, err := io.ReadFull(rsp.Body, first); err != nil || string(first) != "event: part\n" {
		r.t.Fatalf("%q, %v", first, err)
	}
	r.t.Cleanup(func() { _ = rsp.Body.Close() })
}

// TestStreams are bounded, and the rest of the console works on.
func TestStreams(t *testing.T) {
	r := newRig(t)
	r.logIn("alices")
	for range r.options.Streams {
		r.live("shop")
	}
	if code, _ := r.get("/n/shop/live"); code != http.StatusServiceUnavailable {
		t.Errorf("one stream too many: %d", code)
	}
	if code, _ := r.get("/n/shop"); code != http.StatusOK {
		t.Errorf("a page beside: %d", code)
	}
}

// TestStreamsOfOneUser leave some for others.
func TestStreamsOfOneUser(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Streams = 15 })
	r.logIn("alices")
	for range 3 {
		r.live("shop")
	}
	if code, _ := r.get("/n/shop/live"); code != http.StatusServiceUnavailable {
		t.Errorf("a user has a fifth of them: %d", code)
	}
	r.logIn("bobs")
	r.live("bank")
}

// TestStreamOfHTTP2 lasts longer than a browser may take to read.
func TestStreamOfHTTP2(t *testing.T) {
	const timeout = 50 * time.Millisecond
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		out := newStream(w)
		out.timeout = timeout
		for _, part := range []string{"one", "two"} {
			if err := out.send("part", []byte(part)); err != nil {
				t.Errorf("%s: %v", part, err)
			}
			time.Sleep(4 * timeout)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	rsp, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rsp.Body.Close() }()
	body, err := io.ReadAll(rsp.Body)
	if want := "event: part\ndata: one\n\nevent: part\ndata: two\n\n"; err != nil || rsp.ProtoMajor != 2 || string(body) != want {
		t.Errorf("want %q by HTTP/2, got %q by %s: %v", want, body, rsp.Proto, err)
	}
}

// TestConflictThatStays: what is refused as a conflict again and again, although nobody changed the object, ends.
func TestConflictThatStays(t *testing.T) {
	r := newRig(t)
	r.client.Timeout = 20 * time.Second
	const object = "/apis/capstan.dev/v1alpha1/namespaces/shop/databases/orders-db"
	r.api.objects[object] = database1("orders-db")
	r.logIn("alices")
	values := formOf(t, page2(r, "/n/shop/databases/o/orders-db/edit"))
	values.Set("field.replicas", "5")
	values.Set("do", "check")
	r.api.mu.Lock()
	r.api.answers["PATCH "+object] = status(409, metav1.StatusReasonConflict, "a webhook says no")
	r.api.asked = nil
	r.api.mu.Unlock()
	code, page := r.post("/n/shop/databases/o/orders-db/edit", values)
	if code != http.StatusConflict || len(r.api.asked) > 10 {
		t.Errorf("want an end: %d after %d requests", code, len(r.api.asked))
	}
	sees(t, page, "a webhook says no")
}

// TestReferences are followed to objects only, whoever wrote them, and not to all of them.
func TestReferences(t *testing.T) {
	r := newRig(t)
	d := map[string]any{"apiVersion": "capstan.dev/v1alpha1", "kind": "Database", "metadata": map[string]any{"name": "orders-db", "namespace": "shop"}}
	refs := []any{
		map[string]any{"apiVersion": "v1", "kind": "Pods/x/proxy/quit", "name": "y"},
		map[string]any{"apiVersion": "v1", "kind": "../../../nodes/n/proxy/quit", "name": "y"},
		map[string]any{"apiVersion": "../v1", "kind": "Pod", "name": "y"},
		map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "../../y"},
	}
	for i := range 2 * mostRead {
		refs = append(refs, map[string]any{"apiVersion": "v1", "kind": "Service", "name": "s" + strconv.Itoa(i)})
	}
	d["spec"] = map[string]any{"crossplane": map[string]any{"resourceRefs": refs}}
	r.api.objects["/apis/capstan.dev/v1alpha1/namespaces/shop/databases/orders-db"] = d
	r.logIn("alices")
	r.api.asked = nil
	_, page := r.get("/n/shop/databases/o/orders-db")
	sees(t, page, "not read")
	for _, asked := range r.api.asked {
		if strings.Contains(asked, "proxy") || strings.Contains(asked, "/y") {
			t.Errorf("a reference led to %s", asked)
		}
	}
	if n := len(r.api.asked); n > mostRead+10 {
		t.Errorf("a page makes %d requests", n)
	}
}

// TestLive: a page follows objects that never stop changing, also while the user types elsewhere.
func TestLive(t *testing.T) {
	r := newRig(t)
	r.api.changing = true
	const object = "/apis/capstan.dev/v1alpha1/namespaces/shop/databases/orders-db"
	set := func(phase v1alpha1.DatabasePhase) {
		d := database1("orders-db")
		d.Status.Phase = phase
		r.api.mu.Lock()
		defer r.api.mu.Unlock()
		r.api.objects[object] = d
	}
	set(v1alpha1.DatabaseCreating)
	r.logIn("alices")
	rsp, err := r.client.Get(r.address + "/n/shop/databases/o/orders-db/live")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rsp.Body.Close() }()
	lines := bufio.NewScanner(rsp.Body)
	for _, phase := range []v1alpha1.DatabasePhase{v1alpha1.DatabaseCreating, v1alpha1.DatabaseRunning, v1alpha1.DatabaseDown} {
		set(phase)
		began := time.Now()
		for !strings.Contains(lines.Text(), `id="phase">`+string(phase)+"<") {
			if !lines.Scan() {
				t.Fatalf("the stream ended: %v", lines.Err())
			}
		}
		if took := time.Since(began); took >= pollEvery {
			t.Errorf("%s after %s, as if it was not watched", phase, took)
		}
	}
	for deadline := time.Now().Add(time.Minute); r.api.watches.Load() < 2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("want another watch after the API server ended the first one")
		}
	}
}

// TestURL: tokens do not travel in clear text.
func TestURL(t *testing.T) {
	for text, ok := range map[string]bool{
		"https://capstan.example.org": true, "http://localhost:8080": true, "http://127.0.0.1:8080": true, "http://[::1]:8080": true,
		"http://capstan.example.org": false, "ftp://localhost": false, "localhost:8080": false, "https://capstan.example.org/console": false, "http://localhost.example.org": false,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckURL(u); (err == nil) != ok {
			t.Errorf("%s: want allowed %t, got %v", text, ok, err)
		}
	}
}
