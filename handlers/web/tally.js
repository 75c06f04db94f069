(function(){"use strict";var d=document,s=d.currentScript,l=location,n=navigator,p;
if(n.doNotTrack==1||window.doNotTrack==1||n.globalPrivacyControl)return;
var u=new URL("api/event",s.src).href,w=s.getAttribute("data-site")||l.hostname;
function send(){if(p===l.pathname)return;p=l.pathname;var b=JSON.stringify({n:"pageview",u:l.href,d:w,r:d.referrer||null});
if(!(n.sendBeacon&&n.sendBeacon(u,b)))fetch(u,{method:"POST",body:b,keepalive:true,mode:"no-cors"}).catch(function(){})}
["pushState","replaceState"].forEach(function(k){var f=history[k];history[k]=function(){var r=f.apply(this,arguments);send();return r}});
addEventListener("popstate",send);addEventListener("pageshow",function(e){if(e.persisted){p=0;send()}});
if(d.prerendering)d.addEventListener("prerenderingchange",send);else send()})();
