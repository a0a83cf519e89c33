package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// DefaultAddress is where "candor console" serves the pages. A site without a console accepts WebSocket connections
// from pages of this address.
const DefaultAddress = "127.0.0.1:8470"

//go:embed dist
var dist embed.FS

// Config says which site the pages show.
type Config struct {
	Site messages.Name
	// WebSocket is the URL of the site's NATS server, with the scheme ws or wss. Without a host name, the server is on
	// the host from which the pages are loaded.
	WebSocket string
	// Audits is the directory of stored audits, see [AuditsDir], or "".
	Audits string
	// Names are host names without a port. A request for the pages must use one of these names, otherwise it is
	// refused. So a stranger's page cannot use its own host name for this server (DNS rebinding).
	Names []string
	// SignOn lets people sign on at the site's provider of OpenID Connect. If it is nil, people need files of
	// credentials.
	SignOn SignOn
}

// SignOnPath is the beginning of the path of each request that a SignOn serves.
const SignOnPath = "/sign-on/"

// SignOn serves the requests below SignOnPath.
type SignOn interface {
	// Serve answers a request. The argument `origin` is the address of the console in the browser, such as
	// https://west.example:8470.
	Serve(w http.ResponseWriter, r *http.Request, origin string)
	// Host returns the name of the provider's host, for people to read.
	Host() string
}

type file struct {
	kind, tag    string
	body, packed []byte
}

type handler struct {
	config Config
	socket *url.URL
	files  map[string]file
}

// Handler serves the pages of a site.
func Handler(c Config) (http.Handler, error) {
	socket, err := url.Parse(c.WebSocket)
	if err != nil || socket.Scheme != "ws" && socket.Scheme != "wss" || socket.Port() == "" {
		return nil, messages.Errorf(messages.Invalid, "console: %q is no URL of a WebSocket listener; write it like wss://site.example:8471", c.WebSocket)
	}
	h := &handler{config: c, socket: socket, files: map[string]file{}}
	return h, fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		h.files["/"+strings.TrimPrefix(name, "dist/")] = newFile(path.Ext(name), body)
		return nil
	})
}

func newFile(extension string, body []byte) file {
	digest := sha256.Sum256(body)
	f := file{kind: mime.TypeByExtension(extension), tag: `"` + base64.RawURLEncoding.EncodeToString(digest[:12]) + `"`, body: body}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // cannot fail: the level is valid
	_, _ = z.Write(body)                                       // cannot fail: this writes to memory
	_ = z.Close()
	if packed.Len() < len(body) {
		f.packed = packed.Bytes()
	}
	return f
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := hostname(r.Host)
	if !slices.Contains(h.config.Names, name) {
		http.Error(w, fmt.Sprintf("this console is not at %q; open it at %s", r.Host, strings.Join(h.config.Names, ", ")), http.StatusMisdirectedRequest)
		return
	}
	socket := h.socketFor(name)
	protect(w.Header(), socket)
	if h.config.SignOn != nil && strings.HasPrefix(r.URL.Path, SignOnPath) {
		h.config.SignOn.Serve(w, r, originOf(r))
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the console only serves files, to GET and HEAD; requests to the site go over NATS", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == "/site.json" {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		told := map[string]string{"site": h.config.Site, "websocket": socket}
		if h.config.SignOn != nil {
			told["sign_on"] = h.config.SignOn.Host()
		}
		_ = json.NewEncoder(w).Encode(told)
		return
	}
	if r.URL.Path == "/audits.json" {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(h.audits())
		return
	}
	at := r.URL.Path
	if at == "/" {
		at = "/index.html"
	}
	f, ok := h.files[at]
	if !ok {
		http.Error(w, "the console has no such file; its first page is /", http.StatusNotFound)
		return
	}
	f.send(w, r)
}

// AuditsDir is a directory in a site's state directory. It has the last audit of each market, which "candor audit
// --keep" writes.
const AuditsDir = "audits"

// mostAudits is the maximum number of audits that are shown. mostAudit is the maximum size of an audit in bytes.
const mostAudits, mostAudit = 32, 1 << 20

// audits returns the stored reports unchanged. It skips files that do not contain JSON.
func (h *handler) audits() []json.RawMessage {
	all := []json.RawMessage{}
	if h.config.Audits == "" {
		return all
	}
	entries, _ := os.ReadDir(h.config.Audits) // if the directory is missing, there are no audits
	for _, e := range entries {
		about, err := e.Info()
		if path.Ext(e.Name()) != ".json" || err != nil || !about.Mode().IsRegular() || about.Size() > mostAudit || len(all) == mostAudits {
			continue
		}
		if text, err := os.ReadFile(filepath.Join(h.config.Audits, e.Name())); err == nil && json.Valid(text) {
			all = append(all, text)
		}
	}
	return all
}

// send sends a file, compressed if the browser accepts that.
func (f *file) send(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.tag)
	w.Header().Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.body
	if f.packed != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		body = f.packed
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails if the browser has disconnected
	}
}

// protect sets the headers that limit the pages to their own scripts and styles, and to a connection to the site.
func protect(h http.Header, socket string) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self' "+socket+
		"; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// socketFor returns the URL of the WebSocket listener for a page that the browser requested under a host name.
func (h *handler) socketFor(name string) string {
	u := *h.socket
	if u.Hostname() == "" {
		u.Host = net.JoinHostPort(name, u.Port())
	}
	return u.String()
}

func hostname(host string) string {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return strings.ToLower(name)
}

// originOf returns the console's address in the browser. Its host name has been checked: it is one of the console's
// names.
func originOf(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + strings.ToLower(r.Host)
}
