// Package browser tests the console in headless Chromium on a running site. The tests have the build tag browser, so
// that "make test" needs no Chromium; "make console-test" runs them, and "make console-shots" takes pictures.
package browser
